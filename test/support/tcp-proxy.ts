import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Scope } from './redis.ts'

export interface TcpProxy {
  readonly port: number
  /**
   * Holds back all bytes from the server, the clients, or both, on open and new connections. The
   * connections stay open. With a port, only the connection with this port at the server is
   * affected.
   */
  freeze(what: 'responses' | 'requests' | 'both', port?: number): void
  /** The client ports that the server sees. */
  ports(): readonly (number | undefined)[]
  /** Delivers all bytes that were held back. */
  thaw(): void
}

/**
 * A TCP proxy to a server on this machine that can fail silently, as networks do. `onRequest` is
 * called with bytes of a client before they are passed on.
 */
export async function startTcpProxy(
  scope: Scope,
  target: number,
  onRequest: (bytes: Buffer) => void = () => {},
): Promise<TcpProxy> {
  let frozen: { readonly what: 'responses' | 'requests' | 'both' | 'nothing'; readonly port?: number | undefined } = {
    what: 'nothing',
  }
  const pairs = new Set<{ readonly client: Socket; readonly server: Socket }>()
  const apply = () => {
    for (const { client, server } of pairs) {
      const what = frozen.port === undefined || frozen.port === server.localPort ? frozen.what : 'nothing'
      if (what === 'responses' || what === 'both') server.pause()
      else server.resume()
      if (what === 'requests' || what === 'both') client.pause()
      else client.resume()
    }
  }
  const listener = createServer((client) => {
    const pair = { client, server: connect(target, '127.0.0.1') }
    pairs.add(pair)
    client.on('data', (bytes) => {
      onRequest(bytes)
      pair.server.write(bytes)
    })
    pair.server.on('data', (bytes) => client.write(bytes))
    for (const socket of [client, pair.server]) {
      socket.on('error', () => {})
      socket.on('close', () => {
        pairs.delete(pair)
        client.destroy()
        pair.server.destroy()
      })
    }
    apply()
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  scope.after(() => {
    for (const { client } of pairs) client.destroy()
    listener.close()
  })
  const set = (given: typeof frozen) => {
    frozen = given
    apply()
  }
  return {
    port: (listener.address() as AddressInfo).port,
    ports: () => [...pairs].map(({ server }) => server.localPort),
    freeze: (what, port) => set({ what, port }),
    thaw: () => set({ what: 'nothing' }),
  }
}
