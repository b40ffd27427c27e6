import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Scope } from './redis.ts'

export interface TcpProxy {
  readonly port: number
  /** Nothing that the server sends arrives any more, on the connections that there are and on new ones. They stay open. */
  freezeAnswers(): void
  /** Nor does what clients send. */
  freezeBoth(): void
  /** All arrives that was held back. */
  thaw(): void
  /** How many connections are open. */
  connections(): number
}

/** A way to a server on this machine that can be made to fail as networks do: silently. */
export async function startTcpProxy(scope: Scope, target: number): Promise<TcpProxy> {
  const frozen = { answers: false, requests: false }
  const pairs = new Set<{ readonly client: Socket; readonly server: Socket }>()
  const apply = () => {
    for (const { client, server } of pairs) {
      if (frozen.answers) server.pause()
      else server.resume()
      if (frozen.requests) client.pause()
      else client.resume()
    }
  }
  const listener = createServer((client) => {
    const pair = { client, server: connect(target, '127.0.0.1') }
    pairs.add(pair)
    client.on('data', (bytes) => pair.server.write(bytes))
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
  const set = (answers: boolean, requests: boolean) => {
    Object.assign(frozen, { answers, requests })
    apply()
  }
  return {
    port: (listener.address() as AddressInfo).port,
    freezeAnswers: () => set(true, false),
    freezeBoth: () => set(true, true),
    thaw: () => set(false, false),
    connections: () => pairs.size,
  }
}
