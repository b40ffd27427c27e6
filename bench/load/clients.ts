// The clients, in their own process. They receive orders from the bench.
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Connection, Reconnecting, requestOf } from './connection.ts'
import { openSession, StreamAsker } from './http2-connection.ts'
import { asFastAsItResponds, atRate, type Asker } from './loads.ts'
import type { LoadMessage, LoadOrder, LoadResult, RequestsOrder, Visitor } from './order.ts'
import { openSocket } from './sockets.ts'
import { EchoSocket, message } from './websocket.ts'

const say = (message: LoadMessage) => void process.send?.(message)

process.on('message', (order: LoadOrder | 'go') => {
  if (order === 'go') return
  carryOut(order).then(
    (result) => say({ kind: 'done', result }),
    (error: unknown) => say({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) }),
  )
})

/** How many clients connect at the same time. */
const connectingAtOnce = 64
/** How long connecting may take, and by how much the load may exceed its duration, in ms. */
const patience = 30_000

async function carryOut(order: LoadOrder): Promise<LoadResult> {
  let fail: (error: Error) => void = () => {}
  const failed = new Promise<never>((_, reject) => (fail = reject))
  failed.catch(() => {})
  const sockets: Socket[] = []
  const askers: Asker[] = []
  const connectSessions = async ({ streams = 0, bodyBytes, port }: RequestsOrder): Promise<void> => {
    while (sockets.length < order.connections) {
      const { session, socket } = await openSession(port)
      sockets.push(socket.on('error', fail).on('end', () => fail(new Error('a connection was closed'))))
      for (let stream = 0; stream < streams; stream++)
        askers.push(new StreamAsker(session, bodyBytes, (reason) => fail(new Error(reason))))
    }
  }
  const connect = async (): Promise<void> => {
    if (order.kind === 'requests' && order.streams !== undefined) return connectSessions(order)
    if (order.kind === 'requests' && order.reconnects === true) {
      while (askers.length < order.connections)
        askers.push(new Reconnecting(order, (reason) => fail(new Error(reason))))
      return
    }
    while (sockets.length < order.connections) {
      const index = sockets.push(undefined as never) - 1
      const socket = (sockets[index] = await openSocket(order))
      socket.on('error', fail)
      socket.on('end', () => fail(new Error('a connection was closed')))
      const visitor = order.visitors[index % order.visitors.length] as Visitor
      askers[index] = await askerOn(socket, order, visitor, (reason) => fail(new Error(reason)))
    }
  }
  try {
    const atOnce = order.kind === 'requests' && order.streams !== undefined ? 1 : connectingAtOnce
    const connected = Promise.all(Array.from({ length: atOnce }, connect))
    await Promise.race([connected, failed, late(patience, () => `connected: ${Object.keys(askers).length}, no more`)])
    say({ kind: 'connected' })
    await once(process, 'message')
    return await Promise.race([work(askers, order), failed, late(order.ms + patience, () => 'no responses arrive')])
  } finally {
    for (const socket of sockets) socket?.removeAllListeners('end').destroy()
  }
}

async function late(ms: number, why: () => string): Promise<never> {
  await wait(ms, undefined, { ref: false })
  throw new Error(why())
}

async function askerOn(
  socket: Socket,
  order: LoadOrder,
  visitor: Visitor,
  fail: (reason: string) => void,
): Promise<Asker> {
  if (order.kind === 'requests') return new Connection(socket, order.bodyBytes, fail)
  return EchoSocket.shake(socket, order, visitor, fail)
}

async function work(askers: readonly Asker[], order: LoadOrder): Promise<LoadResult> {
  if (order.kind === 'websockets')
    return order.areIdle
      ? { count: askers.length, seconds: 0, p50: NaN, p99: NaN }
      : asFastAsItResponds(askers, [message], order.ms)
  const requests = order.visitors.map((visitor) => requestOf(order, visitor))
  return order.rate === undefined
    ? asFastAsItResponds(askers, requests, order.ms)
    : atRate(askers, requests, order.ms, order.rate)
}
