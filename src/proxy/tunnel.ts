import type { Socket } from 'node:net'
import type { SessionKey } from '../core/names.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import type { SwitchedConnection } from '../transport/transport.ts'
import { ReadBuffer, shortBytes } from '../wire/read-buffers.ts'
import { type CutReason, type LiveStream, reportActivity } from './live-streams.ts'
import type { ProxyParts } from './proxy-parts.ts'
import { closeFrameToClient, closeFrameToServer, FrameTracker } from './websocket-frames.ts'

/** When one side is gone: how long writing the remaining data to the other may take, in ms. */
const flushMs = 30_000
const keepAliveMs = 60_000
/** How long the rest of a frame may take to arrive, so that a Close frame can follow; in ms. */
const restOfFrameMs = 100
/** How long a peer may take to close the connection after a Close frame, in ms. */
const hangUpMs = 1_000

/** Status code and reason of the Close frame for the client: RFC 6455 §7.4.1. */
const closings: Readonly<Record<CutReason, readonly [code: number, reason: string]>> = {
  session_ended: [1008, 'session ended'],
  going_away: [1001, 'going away'],
}

export interface TunnelInput {
  readonly client: Socket
  readonly upstream: SwitchedConnection
  /** Data that the client sent together with its request. */
  readonly head: Buffer
  readonly isWebSocket: boolean
  readonly session: SessionKey | undefined
  /** Whether the access token of the client has ended. Absent: it has none. */
  readonly isOver: (() => boolean) | undefined
  /** It ends with the tunnel. */
  readonly record: RequestRecord
  readonly parts: Pick<ProxyParts, 'live' | 'onActivity'>
}

/**
 * Joins two sockets until one of them or the session ends. The tunnel does not interpret the data.
 * It only finds the ends of WebSocket frames, because a Close frame can only be inserted there.
 * Each chunk is one read and one write, without pipes. A side that does not read stops the other
 * side.
 *
 *     joined ──► closing ──► over (both sides got a Close frame, if possible)
 *        └─────────────────► over (one side is gone)
 */
export class Tunnel implements LiveStream {
  readonly isEndless = true
  readonly #input: TunnelInput
  readonly #toClient: FrameTracker | undefined
  readonly #toUpstream: FrameTracker | undefined
  #closing = false
  #reportedAt = -Infinity

  constructor(input: TunnelInput) {
    this.#input = input
    if (!input.isWebSocket) return
    this.#toClient = new FrameTracker('server')
    this.#toUpstream = new FrameTracker('client')
  }

  join(): void {
    const { client, head, session, isOver, record, parts } = this.#input
    const upstream = this.#upstream
    const release = parts.live.open(session, this, isOver)
    record.markAsStream('tunnel')
    const writtenBefore = client.bytesWritten
    const over = () => {
      release()
      record.bytes = client.bytesWritten - writtenBefore
      record.end(101, true)
    }
    // A tunnel may be silent without limit, so only TCP keep-alive detects a peer that is gone.
    client.setKeepAlive(true, keepAliveMs)
    client.setNoDelay(true)
    client.on('error', ignore)
    upstream.on('error', ignore)
    client.once('close', () => {
      over()
      if (!this.#closing) flushAndClose(upstream)
    })
    upstream.once('close', () => {
      if (!this.#closing) flushAndClose(client)
    })
    client.once('end', () => {
      if (!this.#closing) upstream.end()
    })
    upstream.once('end', () => {
      if (!this.#closing) client.end()
    })
    client.on('drain', () => upstream.resume())
    upstream.on('drain', () => client.resume())
    // A socket may have been closed while the upstream was connecting. It emits `close` only once.
    if (client.destroyed || upstream.destroyed) {
      over()
      this.#destroy()
      return
    }
    this.#toUpstream?.read(head)
    if (head.length > 0) upstream.write(head)
    client.on('data', this.#fromClient)
    client.resume()
    this.#input.upstream.read(this.#fromUpstream)
  }

  /** Ends the tunnel. If a frame to the client has begun, the client still gets the rest of it. */
  cut(why: CutReason): void {
    if (this.#closing) return
    this.#closing = true
    const { client, upstream, record } = this.#input
    record.code = why
    // Data that a peer still sends is dropped. Unread data would make the kernel reset the
    // connection, and the Close frame would be lost.
    client.off('data', this.#fromClient).resume()
    upstream.read(ignore)
    if (this.#toClient?.place === 'inside') this.#passRestOfFrame(this.#toClient, () => this.#sendCloseFrames(why))
    else this.#sendCloseFrames(why)
  }

  #passRestOfFrame(toClient: FrameTracker, then: () => void): void {
    const { client, upstream } = this.#input
    const over = () => {
      clearTimeout(limit)
      upstream.read(ignore)
      then()
    }
    const pass = (chunk: Buffer) => {
      if (!isPassed(client, writeCopy(client, chunk.subarray(0, toClient.readToEndOfFrame(chunk)))))
        upstream.socket.pause()
      if (toClient.place !== 'inside') over()
    }
    const limit = setTimeout(over, restOfFrameMs)
    upstream.read(pass)
  }

  #sendCloseFrames(why: CutReason): void {
    const { client } = this.#input
    const upstream = this.#upstream
    endWith(client, this.#toClient, () => closeFrameToClient(...closings[why]))
    // 1001 is also the code of a browser that leaves the page.
    endWith(upstream, this.#toUpstream, () => closeFrameToServer(1001))
    const limit = setTimeout(() => this.#destroy(), hangUpMs)
    const over = () => {
      if (client.closed && upstream.closed) clearTimeout(limit)
    }
    client.once('close', over)
    upstream.once('close', over)
  }

  #destroy(): void {
    this.#input.client.destroy()
    this.#upstream.destroy()
  }

  get #upstream(): Socket {
    return this.#input.upstream.socket
  }

  readonly #fromClient = (chunk: Buffer): void => {
    const { client, session, parts } = this.#input
    const upstream = this.#upstream
    this.#toUpstream?.read(chunk)
    if (!isPassed(upstream, upstream.write(chunk))) client.pause()
    // Only data of the client counts, because a page that is left open still receives messages.
    this.#reportedAt = reportActivity(session, this.#reportedAt, parts)
  }

  readonly #fromUpstream = (chunk: Buffer): void => {
    const { client } = this.#input
    this.#toClient?.read(chunk)
    if (!isPassed(client, writeCopy(client, chunk))) this.#upstream.pause()
  }
}

/** Whether more may be written after a `write`. If the kernel took it at once, nothing waits. */
function isPassed(socket: Socket, isTaken: boolean): boolean {
  return isTaken || socket.writableLength === 0
}

/** Ends a connection with a Close frame between two frames, or closes it within a frame. */
function endWith(socket: Socket, frames: FrameTracker | undefined, closeFrame: () => Buffer): void {
  if (socket.writable && frames?.place === 'between') socket.end(closeFrame())
  else if (socket.writable && frames?.place === 'after_close') socket.end()
  else socket.destroy()
}

function flushAndClose(socket: Socket): void {
  if (socket.destroyed) return
  // Data of this side would be dropped, and would extend the time limit.
  socket.pause()
  socket.setTimeout(flushMs, () => socket.destroy())
  socket.destroySoon()
}

function ignore(): void {}

/**
 * Writes bytes whose memory is used again after the call. They are copied, because a write may
 * still wait for the peer then.
 * @param bytes at most 64 KiB
 * @returns what `write` of the socket returns
 */
function writeCopy(socket: Socket, bytes: Buffer): boolean {
  if (bytes.length <= shortBytes) return socket.write(Buffer.from(bytes))
  const buffer = ReadBuffer.take(false)
  bytes.copy(buffer.memory)
  return socket.write(buffer.memory.subarray(0, bytes.length), (error) => buffer.giveBack(error))
}
