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
  /** The first message that differs from the one that opened the channel. */
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
  const events = new Events()
  const [body = '', ...more] = events.read((await messages.next()).value)
  const received = new Received(body)
  for (const message of more) received.note(message)
  const readRest = async () => {
    for (let part = await messages.next(); part.done !== true; part = await messages.next())
      for (const message of events.read(part.value)) received.note(message)
  }
  const ended = readRest().then(
    () => ({ failed: false }),
    () => ({ failed: true }),
  )
  return {
    ...base,
    body,
    channel: { lastMessage: () => received.at, otherMessage: () => received.other, ended },
  }
}

/** Splits an event stream into the data of its events. */
class Events {
  #rest = ''

  /** The events that are complete with this part. */
  read(part: unknown): string[] {
    const events = (this.#rest + String(part ?? '')).split('\n\n')
    this.#rest = events.pop() ?? ''
    return events.flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? [])
  }
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
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers, localAddress, rejectUnauthorized: false })
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
