// Opens WebSockets through a gateway and keeps them open, in a process of its own. The parent
// process sends the order, and gets `open` when all are open.
import { once } from 'node:events'
import { openSocket } from '../load/sockets.ts'
import { EchoSocket } from '../load/websocket.ts'

export interface StreamsOrder {
  readonly port: number
  readonly count: number
  /** The sessions, which take turns. */
  readonly cookies: readonly string[]
}

const atOnce = 32

process.on('message', (order: StreamsOrder) => {
  open(order).then(
    () => process.send?.('open'),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})

async function open({ port, count, cookies }: StreamsOrder): Promise<void> {
  let next = 0
  const opening = async () => {
    while (next < count) {
      const cookie = cookies[next++ % cookies.length] as string
      const socket = await openSocket({ port, tls: false })
      socket.on('error', () => socket.destroy())
      const order = {
        kind: 'websockets',
        areIdle: true,
        port,
        tls: false,
        visitors: [],
        connections: 1,
        ms: 0,
      } as const
      await EchoSocket.shake(socket, order, { cookie }, () => socket.destroy())
      void once(socket, 'end').then(() => socket.destroy())
    }
  }
  await Promise.all(Array.from({ length: atOnce }, opening))
}
