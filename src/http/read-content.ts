import type { ClientMessage } from './client-messages.ts'

/** A request, or a stream of HTTP/2, of which nothing has been read yet. */
interface ContentSource {
  readonly headers?: ClientMessage['headers']
  on(event: 'data', listener: (part: Buffer) => void): unknown
  on(event: 'end', listener: () => void): unknown
  off(event: 'data', listener: (part: Buffer) => void): unknown
  once(event: 'close', listener: () => void): unknown
}

/**
 * Reads content into memory. Of content that is too long, the caller has to drop the rest.
 * @returns `incomplete` when the client has closed the connection before the end
 */
export function readContent(source: ContentSource, maxBytes: number): Promise<Buffer | 'too_large' | 'incomplete'> {
  return new Promise((resolve) => {
    if (Number(source.headers?.['content-length'] ?? 0) > maxBytes) return resolve('too_large')
    const parts: Buffer[] = []
    let size = 0
    const receive = (part: Buffer) => {
      parts.push(part)
      size += part.length
      if (size <= maxBytes) return
      source.off('data', receive)
      resolve('too_large')
    }
    source.on('data', receive)
    source.on('end', () => resolve(Buffer.concat(parts)))
    source.once('close', () => resolve('incomplete'))
  })
}

const mediaType = /^\s*([\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+)\s*(?:;|$)/

/**
 * The type and subtype in `Content-Type`, in lower case (RFC 9110 §8.3.1).
 * @returns `undefined` without the field; `malformed` when it has no type and subtype
 */
export function mediaTypeOf({ headers }: Pick<ClientMessage, 'headers'>): string | undefined {
  const type = headers['content-type']
  return type === undefined ? undefined : (mediaType.exec(type)?.[1]?.toLowerCase() ?? 'malformed')
}
