import type { Readable } from 'node:stream'
import type { ClientReply } from '../http/client-messages.ts'
import type { RequestRecord } from '../observe/request-record.ts'

/**
 * Sends content of a known length, and reads no faster than the client. If the file has changed its
 * length meanwhile, or the client reads nothing for `idleTimeoutMs`, the connection is closed, so
 * that the client sees that the response is incomplete.
 */
export function sendContent(
  stream: Readable,
  length: number,
  res: ClientReply,
  { record, idleTimeoutMs }: { readonly record: RequestRecord; readonly idleTimeoutMs: number },
): void {
  if (length === 0 || res.destroyed) {
    stream.destroy()
    return void res.end()
  }
  const timer = idleTimeoutMs === 0 ? undefined : setTimeout(() => res.destroy(), idleTimeoutMs).unref()
  let left = length
  stream.on('data', (part: Buffer) => {
    left -= part.length
    if (left < 0) return void res.destroy()
    record.bytes += part.length
    timer?.refresh()
    if (!res.write(part)) stream.pause()
  })
  res.on('drain', () => stream.resume())
  stream.once('end', () => (left === 0 ? res.end() : res.destroy()))
  stream.once('error', () => res.destroy())
  res.once('close', () => {
    clearTimeout(timer)
    stream.destroy()
  })
}
