import type { Socket } from 'node:net'
import { getSystemErrorName } from 'node:util'
import { atEndOfTurn } from './end-of-turn.ts'

/** The part of a TCP socket's handle that writes text. */
interface Handle {
  /** @returns 0, or the number of a system error */
  writeLatin1String(request: WriteRequest, text: string): number
}

/** The state of a write that the operating system does not take at once. */
interface WriteRequest {
  oncomplete?: (status: number) => void
  /** `unused` until such a write has begun. */
  getAsyncId(): number
}

type Written = (error?: Error | null) => void

const unused = -1
/** In bytes. Node.js never passes a longer text to the operating system at once. */
const maxBytes = 16 * 1024

/** Classes of Node.js. The first text that the stream of a socket writes shows them. */
let TcpHandle: unknown
let Request: (new () => WriteRequest) | undefined
/** For the next write. It stays unused while the operating system takes each text at once. */
let spare: WriteRequest | undefined

/**
 * Writes text like `socket.write(text, 'latin1', written)`: each character is a byte. If the socket
 * has nothing else to write, the text is passed to the operating system without the stream of the
 * socket. For a short text, the stream costs more than the rest of Node.js. If the operating system
 * does not take the text at once, or reports an error, the stream treats the write as its own.
 *
 * The handle of a socket is not public (tested with Node.js 20 to 24 by
 * test/core/direct-writes.test.ts). If Node.js has another handle, and over TLS, the stream writes
 * each text.
 *
 * @param written see `socket.write`. It is called at the end of the turn, after the callbacks of
 * what the stream writes in the same turn.
 * @returns see `socket.write`
 */
export function writeText(socket: Socket, text: string, written?: Written): boolean {
  const { _handle: handle } = socket as unknown as { readonly _handle?: Handle | null }
  if (!handle || !isDirect(socket, handle, text)) return socket.write(text, 'latin1', written)
  const request = (spare ??= new (Request as new () => WriteRequest)())
  const status = handle.writeLatin1String(request, text)
  if (status !== 0 || request.getAsyncId() !== unused) {
    spare = undefined
    return leaveToStream(socket, text, { request, status, written })
  }
  if (written !== undefined) atEndOfTurn(written, null)
  return true
}

function isDirect(socket: Socket, handle: Handle, text: string): boolean {
  if (Request === undefined) {
    learnClasses(handle)
    return false
  }
  const isFree = socket.writableLength === 0 && socket.writableCorked === 0
  const isOpen = !socket.connecting && !socket.writableEnded
  // An empty text that waits would not count in `writableLength`.
  const fits = text.length > 0 && text.length <= maxBytes
  return isFree && isOpen && fits && handle.constructor === TcpHandle
}

/** The next text that the stream writes shows the classes of its handle and of its request. */
function learnClasses(handle: Handle): void {
  if (TcpHandle !== undefined || handle.constructor.name !== 'TCP') return
  handle.writeLatin1String = (request, text) => {
    Reflect.deleteProperty(handle, 'writeLatin1String')
    // Only now, because the socket of an earlier text may have been closed before its write.
    TcpHandle = handle.constructor
    if (typeof request.getAsyncId === 'function') {
      const Class = request.constructor as new () => WriteRequest
      if (new Class().getAsyncId() === unused) Request = Class
    }
    return handle.writeLatin1String(request, text)
  }
}

/** A write that the operating system did not take at once, or has rejected. */
interface BegunWrite {
  readonly request: WriteRequest
  /** `0`, or the number of a system error. */
  readonly status: number
  readonly written: Written | undefined
}

/** The stream of the socket treats a write that has begun as its own. */
function leaveToStream(socket: Socket, text: string, { request, status, written }: BegunWrite): boolean {
  socket._write = (_text, _encoding, done) => {
    Reflect.deleteProperty(socket, '_write')
    if (status !== 0) done(systemError(status))
    else request.oncomplete = (result) => done(result === 0 || socket.destroyed ? null : systemError(result))
  }
  return socket.write(text, 'latin1', written)
}

function systemError(status: number): Error {
  const code = getSystemErrorName(status)
  return Object.assign(new Error(`write ${code}`), { code, errno: status, syscall: 'write' })
}
