import { once } from 'node:events'
import { request } from 'node:http'
import WebSocket from 'ws'

/** A test context, or any object with `after`. */
interface Scope {
  after(over: () => unknown): void
}

/** A `Cookie` header, or other header fields. */
type Sender = string | Readonly<Record<string, string>>

const headersOf = (as: Sender) => (typeof as === 'string' ? { cookie: as } : as)

/** A stream that stays open until the other side ends it. */
export interface OpenStream {
  /** Resolves to the time at which it ended (`performance.now()`). */
  readonly ended: Promise<number>
}

export interface OpenSocket extends OpenStream {
  /** Resolves to the close code and the reason when it ends. */
  readonly closing: Promise<string>
  /** Resolves when the application has returned the message. */
  echo(text: string): Promise<void>
}

/** Opens a WebSocket to the application, and waits for its first message. */
export async function openWebSocket(
  t: Scope,
  url: string,
  as: Sender,
  tls: { readonly ca?: string | undefined } = {},
): Promise<OpenSocket> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers: headersOf(as), ...tls })
  t.after(() => socket.terminate())
  const ended = new Promise<number>((resolve) => socket.once('close', () => resolve(performance.now())))
  const closing = new Promise<string>((resolve) =>
    socket.once('close', (code, why) => resolve(`${code} ${why}`.trim())),
  )
  socket.on('error', () => {})
  await once(socket, 'message')
  const echo = (text: string) =>
    new Promise<void>((resolve) => {
      socket.on('message', (message) => {
        if (String(message).includes(text)) resolve()
      })
      socket.send(text)
    })
  return { ended, closing, echo }
}

/** Opens an event stream, and waits for its first event. */
export async function openEventStream(t: Scope, url: string, as: Sender): Promise<OpenStream> {
  const sent = request(url, { headers: { ...headersOf(as), accept: 'text/event-stream' } })
  t.after(() => sent.destroy())
  sent.on('error', () => {})
  sent.end()
  const [response] = await once(sent, 'response')
  if (response.statusCode !== 200) throw new Error(`the event stream got ${response.statusCode}`)
  const ended = new Promise<number>((resolve) => response.once('close', () => resolve(performance.now())))
  response.on('error', () => {})
  await once(response, 'data')
  return { ended }
}
