import type { Socket } from 'node:net'
import { getSystemErrorName } from 'node:util'
import { shortBytes } from './read-buffers.ts'
import { atEndOfTurn } from './timing.ts'

/** The part of a TCP handle that writes. Its methods return 0, or the number of a system error. */
interface Handle {
  writeLatin1String(request: WriteRequest, text: string): number
  writeBuffer(request: WriteRequest, bytes: Buffer): number
}

/** The state of a write that the operating system does not take at once. */
interface WriteRequest {
  oncomplete?: (status: number) => void
  /** Keeps memory that the operating system has not read completely, as Node's own writes do. */
  buffer?: Buffer
  /** `unused` until such a write has begun. */
  getAsyncId(): number
}

type Written = (error?: Error | null) => void

const unused = -1
/** In bytes. Node.js never passes a longer text to the operating system at once. */
const maxTextBytes = 16 * 1024
/**
 * The sizes of memory for bytes that leave together with text. A short part with a head fits into
 * the largest. The sizes limit how much memory a write keeps that has to wait.
 */
const outgoingSizes = [2 * 1024, 6 * 1024, shortBytes + 8 * 1024] as const
const maxWrappedBytes = Math.max(...outgoingSizes)

/** Classes of Node.js. The first write through the stream of a socket shows them. */
let TcpHandle: unknown
let Request: (new () => WriteRequest) | undefined
/** For the next write. It stays unused while the operating system takes each write at once. */
let spare: WriteRequest | undefined
/** Memory of each size for the next write. It is replaced when a write has to wait. */
const outgoing: (Buffer | undefined)[] = []

/**
 * Writes text like `socket.write(text, 'latin1', written)`: each character is a byte. If the socket
 * has nothing else to write, the text is passed to the operating system without the stream of the
 * socket. For a short text, the stream costs more than the rest of Node.js. If the operating system
 * does not take the text at once, or reports an error, the stream treats the write as its own.
 *
 * The handle of a socket is not public (tested with Node.js 22 and 24 by
 * test/wire/direct-writes.test.ts). If Node.js has another handle, and over TLS, the stream writes
 * each text.
 *
 * @param written see `socket.write`. It is called before the next event. Its order among the
 * callbacks of `socket.write` is not defined.
 * @returns see `socket.write`
 */
export function writeText(socket: Socket, text: string, written?: Written): boolean {
  const handle = directHandle(socket, text.length, maxTextBytes)
  if (handle === undefined) return socket.write(text, 'latin1', written)
  const request = nextRequest()
  const status = handle.writeLatin1String(request, text)
  if (!isTaken(request, status)) return leaveToStream(socket, Buffer.from(text, 'latin1'), { request, status, written })
  if (written !== undefined) atEndOfTurn(written, null)
  return true
}

/** Bytes with the text around them. In text, each character is a byte. */
export interface Wrapped {
  readonly before: string
  readonly bytes: Uint8Array
  readonly after: string
}

/** A chunk of the chunked transfer coding (RFC 9112 §7.1), behind a head and before an end. */
export function chunk(head: string, bytes: Uint8Array, end = ''): Wrapped {
  return { before: `${head}${bytes.length.toString(16)}\r\n`, bytes, after: `\r\n${end}` }
}

/**
 * Writes bytes and the text around them like {@link writeText}, with one write. The memory of the
 * bytes may be used again when the function has returned.
 *
 * @param written see {@link writeText}
 * @returns see `socket.write`
 */
export function writeWrapped(socket: Socket, wrapped: Wrapped, written?: Written): boolean {
  const length = wrapped.before.length + wrapped.bytes.length + wrapped.after.length
  const handle = directHandle(socket, length, maxWrappedBytes)
  if (handle === undefined) return socket.write(join(wrapped, Buffer.allocUnsafe(length)), written)
  const size = outgoingSizes.findIndex((bytes) => bytes >= length)
  const memory = (outgoing[size] ??= Buffer.allocUnsafeSlow(outgoingSizes[size] as number))
  const joined = join(wrapped, memory)
  const request = nextRequest()
  const status = handle.writeBuffer(request, joined)
  if (!isTaken(request, status)) {
    request.buffer = joined
    outgoing[size] = undefined
    return leaveToStream(socket, joined, { request, status, written })
  }
  if (written !== undefined) atEndOfTurn(written, null)
  return true
}

/**
 * Writes bytes and the text around them through the stream of the socket.
 * @param written see `socket.write`. Until it is called without an error, the memory of the bytes
 * must not be used again.
 * @returns see `socket.write`
 */
export function writeLent(socket: Socket, { before, bytes, after }: Wrapped, written?: Written): boolean {
  socket.cork()
  if (before !== '') socket.write(before, 'latin1')
  let hasRoom = socket.write(bytes, written)
  if (after !== '') hasRoom = socket.write(after, 'latin1')
  socket.uncork()
  return hasRoom
}

/** @returns the part of `memory` that was filled */
function join({ before, bytes, after }: Wrapped, memory: Buffer): Buffer {
  let end = before === '' ? 0 : memory.write(before, 'latin1')
  memory.set(bytes, end)
  end += bytes.length
  if (after !== '') end += memory.write(after, end, 'latin1')
  return memory.subarray(0, end)
}

/** The handle of a socket, if `length` bytes can be written without the stream. */
function directHandle(socket: Socket, length: number, maxBytes: number): Handle | undefined {
  const { _handle: handle } = socket as unknown as { readonly _handle?: Handle | null }
  if (!handle) return undefined
  if (Request === undefined) {
    learnClasses(handle)
    return undefined
  }
  const isFree = socket.writableLength === 0 && socket.writableCorked === 0
  const isOpen = !socket.connecting && !socket.writableEnded
  // An empty text that waits would not count in `writableLength`.
  const fits = length > 0 && length <= maxBytes
  return isFree && isOpen && fits && handle.constructor === TcpHandle ? handle : undefined
}

function nextRequest(): WriteRequest {
  return (spare ??= new (Request as new () => WriteRequest)())
}

/** Whether the operating system has taken all of a write at once. */
function isTaken(request: WriteRequest, status: number): boolean {
  if (status === 0 && request.getAsyncId() === unused) return true
  spare = undefined
  return false
}

const methods = ['writeLatin1String', 'writeBuffer'] as const

/** The next write of the stream shows the classes of its handle and of its request. */
function learnClasses(handle: Handle): void {
  if (TcpHandle !== undefined || handle.constructor.name !== 'TCP') return
  for (const method of methods) {
    handle[method] = (request: WriteRequest, data: never) => {
      for (const each of methods) Reflect.deleteProperty(handle, each)
      // Only now, because the socket of an earlier write may have been closed before.
      TcpHandle = handle.constructor
      if (typeof request.getAsyncId === 'function') {
        const Class = request.constructor as new () => WriteRequest
        if (new Class().getAsyncId() === unused) Request = Class
      }
      return handle[method](request, data)
    }
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
function leaveToStream(socket: Socket, bytes: Buffer, { request, status, written }: BegunWrite): boolean {
  socket._write = (_bytes, _encoding, done) => {
    Reflect.deleteProperty(socket, '_write')
    if (status !== 0) done(systemError(status))
    else request.oncomplete = (result) => done(result === 0 || socket.destroyed ? null : systemError(result))
  }
  return socket.write(bytes, written)
}

function systemError(status: number): Error {
  const code = getSystemErrorName(status)
  return Object.assign(new Error(`write ${code}`), { code, errno: status, syscall: 'write' })
}
