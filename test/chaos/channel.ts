// What stays open between a browser and an application: event streams and WebSockets.
import { type Dispatcher, request } from 'undici'
import WebSocket from 'ws'
import { now } from './history.ts'

/** The response to the request for a channel. */
export interface Opening {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The first message, or the content of a refusal. */
  readonly body: string
  /** Absent: it was not opened. */
  readonly channel?: Channel
}

interface Channel {
  /** When the latest message arrived. */
  lastMessage(): number
  /** The first message that is not as the one that opened the channel. */
  otherMessage(): string | undefined
  /** Resolves when the channel ends. `failed`: without the end that the protocol has. */
  readonly ended: Promise<{ readonly code?: number; readonly failed: boolean }>
}

export interface Opener {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly dispatcher: Dispatcher
  readonly localAddress: string
  /** Closes the channel, or stops waiting for it. */
  readonly signal: AbortSignal
}

/** @throws when there is no response */
export async function openEventStream({ url, headers, dispatcher, signal }: Opener): Promise<Opening> {
  const response = await request(url, { dispatcher, headers, signal, bodyTimeout: 0 })
  const base = { status: response.statusCode, headers: response.headers }
  if (response.headers['content-type'] !== 'text/event-stream') return { ...base, body: await response.body.text() }
  const messages = response.body[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const body = eventsIn((await messages.next()).value)[0] ?? ''
  const received = new Received(body)
  const rest = async () => {
    for (let part = await messages.next(); part.done !== true; part = await messages.next())
      for (const message of eventsIn(part.value)) received.note(message)
  }
  const ended = rest().then(
    () => ({ failed: false }),
    () => ({ failed: true }),
  )
  return {
    ...base,
    body,
    channel: { lastMessage: () => received.at, otherMessage: () => received.other, ended },
  }
}

/** The events of a part of a stream. They are short, and each is one write of the application. */
function eventsIn(part: unknown): string[] {
  return [...String(part).matchAll(/^data: (.*)$/gm)].map(([, message = '']) => message)
}

/** The messages of a channel, which all have to be the same. */
class Received {
  readonly #first: string
  at = now()
  other: string | undefined

  constructor(first: string) {
    this.#first = first
  }

  note(message: string): void {
    this.at = now()
    if (message !== this.#first) this.other ??= message
  }
}

/** @throws when there is no response */
export async function openWebSocket({ url, headers, localAddress, signal }: Opener): Promise<Opening> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers, localAddress })
  signal.addEventListener('abort', () => socket.terminate())
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed before the first message')))
    socket.once('unexpected-response', (_, response) => {
      let body = ''
      response.on('data', (bytes: Buffer) => (body += String(bytes)))
      response.once('close', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
    })
    socket.once('message', (message: Buffer) => {
      const body = String(message)
      const received = new Received(body)
      socket.on('message', (next: Buffer) => received.note(String(next))).on('error', () => {})
      const ended = new Promise<{ code: number; failed: boolean }>((done) =>
        socket.once('close', (code) => done({ code, failed: code === 1006 })),
      )
      const channel = { lastMessage: () => received.at, otherMessage: () => received.other, ended }
      resolve({ status: 101, headers: {}, body, channel })
    })
  })
}
