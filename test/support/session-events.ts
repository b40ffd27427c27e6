import type { TestContext } from 'node:test'
import { request } from 'undici'
import type { Browser } from './browser.ts'

/** An event about a session. */
export interface SessionEvent {
  readonly name: string
  readonly data: Readonly<Record<'now' | 'expires_at' | 'absolute_expires_at', number>> & { readonly person?: string }
}

interface SessionEvents {
  readonly status: number
  /** The next event, or `undefined` at the end of the stream. */
  next(): Promise<SessionEvent | undefined>
}

/** Opens the event stream of a gateway as a page of its own origin does. `url`: a replica. */
export async function openSessionEvents(
  t: TestContext,
  url: string,
  person: Pick<Browser, 'cookieHeader'> | undefined,
  headers: Readonly<Record<string, string>> = {},
): Promise<SessionEvents> {
  const stop = new AbortController()
  t.after(() => stop.abort())
  const response = await request(`${url}/.gatehouse/events`, {
    headers: {
      accept: 'text/event-stream',
      'sec-fetch-site': 'same-origin',
      cookie: person?.cookieHeader ?? '',
      ...headers,
    },
    signal: stop.signal,
    bodyTimeout: 0,
  })
  response.body.on('error', () => {})
  const blocks = blocksOf(response.body)
  return {
    status: response.statusCode,
    next: async () => {
      for (;;) {
        const { value, done } = await blocks.next()
        if (done === true) return undefined
        const name = /^event: (.*)$/m.exec(value)?.[1]
        if (name !== undefined) return { name, data: JSON.parse(/^data: (.*)$/m.exec(value)?.[1] ?? '') }
      }
    },
  }
}

async function* blocksOf(body: AsyncIterable<Buffer>): AsyncGenerator<string, void> {
  let text = ''
  for await (const part of body) {
    text += part.toString()
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    yield* blocks
  }
}
