// Opens WebSockets through a gateway and keeps them open, in a process of its own.
import { once } from 'node:events'
import { openSocket } from '../load/sockets.ts'
import { EchoSocket } from '../load/websocket.ts'
import { opening } from './opening.ts'

const atOnce = 32

opening(async ({ ports, count, cookies }) => {
  let next = 0
  const openOne = async () => {
    while (next < count) {
      const [cookie, port] = [cookies[next % cookies.length] as string, ports[next % ports.length] as number]
      next += 1
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
  await Promise.all(Array.from({ length: atOnce }, openOne))
})
