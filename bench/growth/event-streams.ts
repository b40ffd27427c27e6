// Opens event streams through a gateway over HTTP/2 and keeps them open, in a process of its own.
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { opening } from './opening.ts'

/** As many as the gateway allows, and as a browser or a load balancer opens. */
const streamsPerConnection = 100
const connectingAtOnce = 4

opening(async ({ ports, count, cookies }) => {
  let opened = 0
  const fill = async () => {
    while (opened < count) {
      const first = opened
      const end = Math.min(count, first + streamsPerConnection)
      opened = end
      const port = ports[(first / streamsPerConnection) % ports.length] as number
      const session = connect(`http://127.0.0.1:${port}`)
      await once(session, 'connect')
      const numbers = Array.from({ length: end - first }, (_, n) => first + n)
      await Promise.all(numbers.map((n) => open(session, n, cookies[n % cookies.length] as string)))
    }
  }
  await Promise.all(Array.from({ length: connectingAtOnce }, fill))
})

/** Resolves when the first event has arrived. */
async function open(session: ClientHttp2Session, n: number, cookie: string): Promise<void> {
  const stream = session.request({ ':path': `/events/${n}`, accept: 'text/event-stream', cookie })
  const [fields] = (await once(stream, 'response')) as [{ readonly ':status'?: number }]
  if (fields[':status'] !== 200) throw new Error(`stream ${n} got ${fields[':status']}`)
  await once(stream, 'data')
  stream.on('close', () => {
    throw new Error(`stream ${n} was closed`)
  })
}
