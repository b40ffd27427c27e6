import type { Socket } from 'node:net'
import { noteReuse } from './resending.ts'

/** Disarms three traps of undici's HTTP/1.1 client, before it gets hold of the socket. */
export function forgiving(socket: Socket): Socket {
  tellResetFromEnd(socket)
  const isUnanswered = dropContinue(socket)
  noteReuse(socket, isUnanswered)
  goOnAtEnd(socket)
  return socket
}

/**
 * undici takes a reset for the regular end of an answer that ends with its connection, and a
 * truncated body would look whole. It knows the reset by its code, so the code is another one; our
 * listener comes first.
 */
function tellResetFromEnd(socket: Socket): void {
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = 'ERR_UPSTREAM_RESET'
  })
}

/** Of undici's parser of a connection. */
interface Parser {
  readonly llhttp: { llhttp_resume(pointer: unknown): void }
  readonly ptr: unknown
  paused: boolean
  resume(): void
}

/**
 * undici fails an assertion, where nobody can catch it, when a connection ends while its parser is
 * paused for a client that takes its time (nodejs/undici#5360, mended in 8). All content has been
 * passed on by then, so it goes on; our listener comes first.
 */
function goOnAtEnd(socket: Socket): void {
  socket.on('end', () => {
    const key = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser')
    const parser = key && (socket as unknown as Record<symbol, Parser | null>)[key]
    if (!parser?.paused) return
    parser.resume()
    // Where the end of the connection is that of the content it has paused once more.
    if (!parser.paused) return
    parser.llhttp.llhttp_resume(parser.ptr)
    parser.paused = false
  })
}

const maxInterimBytes = 8 * 1024

/**
 * undici breaks the connection on a "100 Continue" that it did not ask for, although a client has
 * to put up with it (RFC 9110 §15.2). It is taken out of what undici reads, and only where an
 * answer begins: after a request's head was written, which undici does with a string that begins
 * with the method (those that frame a chunk begin with CR LF). Returns whether the connection is
 * used again, and no byte of the response to the last request has arrived.
 */
function dropContinue(socket: Socket): () => boolean {
  const write = socket.write
  const read = socket.read
  let answerDue = false
  let requestsSent = 0
  let hasReceived = false
  let held: Buffer | undefined

  socket.write = function (this: Socket, ...given: unknown[]) {
    const [data] = given
    if (typeof data === 'string' && !data.startsWith('\r\n')) {
      answerDue = true
      requestsSent += 1
      hasReceived = false
    }
    return (write as (...given: unknown[]) => boolean).apply(this, given)
  } as Socket['write']

  socket.read = function (this: Socket, size?: number): Buffer | null {
    const chunk = read.call(this, size) as Buffer | null
    hasReceived ||= chunk !== null
    if (!answerDue || chunk === null) return chunk

    const answer = afterContinue(held ? Buffer.concat([held, chunk]) : chunk)
    answerDue = answer.incomplete
    held = answer.incomplete ? answer.bytes : undefined
    return answer.incomplete ? null : answer.bytes
  }
  return () => requestsSent > 1 && !hasReceived
}

/**
 * What is left when each "100 Continue" at the beginning is gone; `incomplete` when it cannot be
 * told yet.
 */
function afterContinue(bytes: Buffer): { readonly bytes: Buffer; readonly incomplete: boolean } {
  let rest = bytes
  while (beginsWithContinue(rest)) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0 || end + 4 === rest.length)
      return { bytes: end < 0 ? rest : rest.subarray(rest.length), incomplete: rest.length < maxInterimBytes }
    rest = rest.subarray(end + 4)
  }
  return { bytes: rest, incomplete: false }
}

const continueLine = Buffer.from('HTTP/1.1 100')

/** Also when all that has arrived is the beginning of it. */
function beginsWithContinue(bytes: Buffer): boolean {
  // The status of nearly every answer differs in its first digit, which is one look.
  if (bytes.length >= continueLine.length && bytes[9] !== 0x31) return false
  const length = Math.min(bytes.length, continueLine.length)
  return bytes.compare(continueLine, 0, length, 0, length) === 0
}
