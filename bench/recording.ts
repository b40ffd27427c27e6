// A recorded page: what an application sent to a browser, which the upstream sends again.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Recorded {
  readonly isFile: boolean
  readonly fields: readonly (readonly [name: string, value: string])[]
  /** In base64. */
  readonly content: string
}

/** Responses by the method and the target of their request. */
export type Recording = Readonly<Record<string, Recorded>>

/** What web servers send with files. */
const validators = [
  ['last-modified', 'Tue, 07 Feb 2023 21:04:00 GMT'],
  ['etag', '"5f3c-19b2a7d4c80"'],
] as const

function fileIn(folder: string): string {
  return join(folder, 'recording.json')
}

export function writeRecording(folder: string, recording: Recording): void {
  writeFileSync(fileIn(folder), JSON.stringify(recording))
}

/** Responses to a first request, and to one that asks again about a file. */
const responses = new Map<string, { readonly first: Buffer; readonly again: Buffer }>()

/** The recorded response to a request. `undefined`: nothing is recorded for it. */
export function recordedResponse(folder: string, head: string): Buffer | undefined {
  if (responses.size === 0 && existsSync(fileIn(folder)))
    for (const [key, recorded] of Object.entries(JSON.parse(readFileSync(fileIn(folder), 'utf8')) as Recording))
      responses.set(key, responsesOf(recorded))
  const found = responses.get(/^\S+ \S+/.exec(head)?.[0] ?? '')
  return /\r\nif-(?:none-match|modified-since): /i.test(head) ? found?.again : found?.first
}

function responsesOf({ isFile, fields, content }: Recorded) {
  const lines = [...fields, ...(isFile ? validators : [])].map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const bytes = Buffer.from(content, 'base64')
  const head = Buffer.from(`HTTP/1.1 200 OK\r\n${lines}content-length: ${bytes.length}\r\n\r\n`, 'latin1')
  const first = Buffer.concat([head, bytes])
  return { first, again: isFile ? Buffer.from(`HTTP/1.1 304 Not Modified\r\n${lines}\r\n`, 'latin1') : first }
}
