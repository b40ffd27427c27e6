import { get, type IncomingMessage } from 'node:http'
import { until } from './until.ts'

/** A test context, or any object with `after`. */
interface Scope {
  after(over: () => unknown): void
}

/** The event stream of the administration page. */
export interface PageStream {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** Everything that has arrived. */
  text(): string
  isOver(): boolean
  /** The newest content of a part of the page. */
  part(id: string): string
  close(): void
}

export async function openPageStream(
  t: Scope,
  admin: string,
  {
    query = '',
    headers = {},
  }: { readonly query?: string; readonly headers?: Readonly<Record<string, string | undefined>> } = {},
): Promise<PageStream> {
  const all = { accept: 'text/event-stream', 'sec-fetch-site': 'same-origin', ...headers }
  const headersSent = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
  const sent = get(`${admin}/events${query}`, { headers: headersSent, agent: false })
  t.after(() => sent.destroy())
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve)
    sent.once('error', reject)
  })
  let [text, isOver] = ['', false]
  response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  response.on('close', () => (isOver = true)).on('error', () => {})
  sent.on('error', () => {})
  const updates = () =>
    [...text.matchAll(/^data: (\{.*\})\n\n/gm)].flatMap(
      ([, json = '']) => (JSON.parse(json) as { parts: { id: string; html: string }[] }).parts,
    )
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: () => text,
    isOver: () => isOver,
    part: (id) => updates().findLast((part) => part.id === `part-${id}`)?.html ?? '',
    close: () => sent.destroy(),
  }
}

/** Resolves when a part of the page matches. */
export function whenPart(stream: PageStream, id: string, pattern: RegExp): Promise<void> {
  return until(`${id}: ${pattern}`, () => pattern.test(stream.part(id)))
}
