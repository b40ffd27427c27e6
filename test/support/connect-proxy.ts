import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** An HTTP proxy to whom every host is this machine. */
export interface ConnectProxy {
  readonly url: string
  /** The targets of the tunnels: `id.example.com:443`. */
  readonly tunnels: readonly string[]
  /** The requests that were not `CONNECT`. */
  readonly others: readonly string[]
  /** The values of `Proxy-Authorization`. */
  readonly credentials: readonly (string | undefined)[]
  /** Responds to all further tunnels with this status. */
  refuse(status: number): void
  /** Does not respond to further tunnels, until the returned function is called. */
  hang(): () => void
}

export async function startConnectProxy(
  t: TestContext,
  options: {
    /** Where all tunnels lead. Default: the port that the client asks for. */
    readonly port?: number
    readonly tls?: { readonly cert: string; readonly key: string }
  } = {},
): Promise<ConnectProxy> {
  const { port, tls } = options
  const [tunnels, others, credentials] = [[] as string[], [] as string[], [] as (string | undefined)[]]
  const sockets = new Set<Socket>()
  let refusal: number | undefined
  let isHanging = false
  const server = tls === undefined ? createServer() : createSecureServer(tls)
  server.on('request', ({ method, url }, res) => {
    others.push(`${method} ${url}`)
    res.writeHead(405).end()
  })
  server.on('connect', ({ url = '', headers }: IncomingMessage, client: Socket) => {
    tunnels.push(url)
    credentials.push(headers['proxy-authorization'])
    if (isHanging) return void sockets.add(client)
    if (refusal !== undefined) return void client.end(`HTTP/1.1 ${refusal} Refused\r\n\r\n`)
    const target = connect(port ?? Number(url.split(':').at(-1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      target.pipe(client).pipe(target)
    })
    for (const socket of [client, target]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ tunnels, others, credentials },
    refuse: (status) => void (refusal = status),
    hang: () => {
      isHanging = true
      return () => void (isHanging = false)
    },
  }
}
