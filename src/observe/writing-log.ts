import fs from 'node:fs'
import pino from 'pino'
import { createAudit } from './audit.ts'
import type { Log } from './log.ts'
import { pretty } from './pretty.ts'

export interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Standard output when absent. */
  readonly stream?: 'stdout' | 'stderr'
  /** Lines of JSON when absent. */
  readonly format?: 'json' | 'pretty' | 'pretty_in_color'
  /** Other processes write into the same stream. */
  readonly isShared?: boolean
}

/** A log that writes. */
export interface WritingLog extends Log {
  /**
   * Adds a complete line of JSON with its line break. It may wait to be written with others.
   */
  readonly add: (line: string) => void
  /** Writes audit events, with the level info. Other lines never displace them. */
  readonly audit: Pick<Log, 'info'>
  /** Whether lines of this level are written. */
  isWritten(level: LogOptions['level']): boolean
  /** The number of lines that were dropped because nothing read them. */
  dropped(): DroppedLines
  /**
   * Resolves with `true` when all lines are written, or with `false` after `limitMs` because
   * nothing reads them.
   */
  flush(limitMs: number): Promise<boolean>
}

/**
 * Creates a log on standard output or standard error. It never blocks the gateway: lines are
 * dropped when nothing reads them.
 */
export function createLog(options: LogOptions): WritingLog {
  const { level, stream = 'stdout', format = 'json', isShared = false } = options
  const formatLine = format === 'json' ? undefined : (line: string) => pretty(line, format === 'pretty_in_color')
  const own = ownPipe(stream)
  const isNonBlocking = own === undefined ? () => !isShared && isSetNonBlocking(stream) : () => true
  const to = { fd: own ?? fdOf(stream), isShared, isNonBlocking }
  const lines = new Lines({ ...to, formatLine }, (dropped) => {
    if (dropped.lines > 0) always.warn({ lines: dropped.lines }, 'log.dropped')
    if (dropped.auditEvents > 0) createAudit(audit).record('audit.dropped', { events: dropped.auditEvents })
  })
  const logger = pino(pinoOptions(level), lines)
  const always = logger.child({}, { level: 'info' })
  const auditor = pino(pinoOptions(level), { write: (line) => lines.write(line, 'audit') })
  const audit: WritingLog['audit'] = { info: (message, fields) => auditor.info(fields ?? {}, message) }
  return {
    add: (line) => lines.add(line, 'access'),
    audit,
    isWritten: (wanted) => logger.isLevelEnabled(wanted),
    dropped: () => lines.dropped,
    flush: (limitMs) => lines.flush(limitMs),
    announce: (message, fields) => always.info(fields ?? {}, message),
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
  }
}

function pinoOptions(level: LogOptions['level']): pino.LoggerOptions {
  return {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  }
}

/**
 * The purpose of a line. Each purpose has its own share of the buffer, see {@link Lines}.
 */
export type LineKind = 'access' | 'log' | 'audit'

/**
 * The size of the buffers in bytes; further lines are dropped. The access log may fill half of the
 * ordinary buffer, so its lines are dropped first. Audit events have a buffer of their own.
 */
const maxWaiting = { access: 512 * 1024, ordinary: 1024 * 1024, audit: 4 * 1024 * 1024 }
/**
 * How long a line waits to be written together with others, in ms, and the size of such a batch in
 * bytes.
 */
const batchDelayMs = 10
const maxBatchBytes = 64 * 1024
/**
 * The size of an atomic write into a pipe (POSIX, PIPE_BUF). Larger writes of several processes
 * would mix their lines.
 */
const maxAtomicWrite = 4096

interface LinesOptions {
  readonly fd: number
  /** Other processes write into it too. */
  readonly isShared: boolean
  /**
   * Whether a write takes what the reader has room for, and never waits: see {@link ownPipe}.
   * Then the main thread writes, because to wake a thread for a line would cost more than the line.
   */
  readonly isNonBlocking?: () => boolean
  /** Formats a line before it is written. */
  readonly formatLine?: ((line: string) => string) | undefined
}

/** The number of lines that were dropped because nothing read them. */
export interface DroppedLines {
  /** Lines of the log and the access log. */
  readonly lines: number
  readonly auditEvents: number
}

/**
 * How long the result of `isNonBlocking` holds, in ms. Another process with the same stream may
 * change it at any time, and then the main thread must not wait for the reader.
 */
const checkEveryMs = 100

/**
 * When the next attempt follows, in ms, if a stream that does not block is full. A pipe has room
 * for some milliseconds of a busy log, so the first attempt is soon. The delay doubles up to the
 * longest.
 */
const retryDelayMs = { first: 5, longest: 100 }

function fdOf(stream: 'stdout' | 'stderr'): number {
  return stream === 'stdout' ? 1 : 2
}

/**
 * The pipe of a standard stream, opened again so that its writes never wait. Its mode belongs to
 * this process alone. `undefined`: the stream is no pipe, this process may not open it, or the
 * operating system has no /proc.
 */
function ownPipe(stream: 'stdout' | 'stderr'): number | undefined {
  const fd = fdOf(stream)
  try {
    if (!fs.fstatSync(fd).isFIFO()) return undefined
    return fs.openSync(`/proc/self/fd/${fd}`, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK)
  } catch {
    return undefined
  }
}

/**
 * Whether a write to a standard stream never waits for its reader. Node.js sets this for pipes and
 * sockets when the stream is first used. The start or the end of another process of Node.js may
 * reset it for all processes that share the stream. The result is `false` where the operating
 * system does not tell.
 */
function isSetNonBlocking(stream: 'stdout' | 'stderr'): boolean {
  const { fd, isTTY } = process[stream]
  if (isTTY) return false
  try {
    const [, flags = ''] = /^flags:\s*([0-7]+)$/m.exec(fs.readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')) ?? []
    return (Number.parseInt(flags, 8) & fs.constants.O_NONBLOCK) !== 0
  } catch {
    return false
  }
}

/** Lines that are written together. */
interface Batch {
  readonly memory: Buffer
  bytes: number
  /** How many of the bytes are audit events. */
  auditBytes: number
  /** How many of the bytes are written. */
  written: number
}

/**
 * Writes lines in their order, in batches, without blocking and with bounded buffers. When nothing
 * reads them, lines are dropped and counted, those of the access log first. Audit events have their
 * own bound, so other lines never displace them. Batches use the same memory again: memory for each
 * batch would become old before it is free, and fill some megabytes until V8 collects old objects.
 */
export class Lines {
  readonly #fd: number
  readonly #maxBytes: number
  readonly #isNonBlocking: () => boolean
  /** The last result of `isNonBlocking`, and when it was asked, on the clock of `performance`. */
  #nonBlocking = { isSet: false, at: Number.NEGATIVE_INFINITY }
  readonly #formatLine: ((line: string) => string) | undefined
  readonly #onReadAgain: (dropped: DroppedLines) => void
  /** Batches without room for the next line, which are written first. */
  readonly #full: Batch[] = []
  /** The batch that collects lines. */
  #next: Batch | undefined
  /** The batch that collects lines does not wait for more. */
  #isDue = false
  /** The batch that is being written, or of which an error has left a part. */
  #current: Batch | undefined
  #isWriting = false
  #retryDelayMs = retryDelayMs.first
  /** Memory of a batch that was written. The next batch uses it again. */
  #free: Buffer | undefined
  #isReaderGone = false
  readonly #waiting = { ordinary: 0, audit: 0 }
  #timer: NodeJS.Timeout | undefined
  readonly #dropped = { lines: 0, auditEvents: 0 }
  #unreported = { lines: 0, auditEvents: 0 }
  readonly #flushes: (() => void)[] = []

  /** @param onReadAgain receives the number of dropped lines when the reader reads again */
  constructor(
    { fd, isShared, isNonBlocking = never, formatLine }: LinesOptions,
    onReadAgain: (dropped: DroppedLines) => void,
  ) {
    this.#fd = fd
    this.#isNonBlocking = isNonBlocking
    this.#maxBytes = isShared ? maxAtomicWrite : maxBatchBytes
    this.#formatLine = formatLine
    this.#onReadAgain = onReadAgain
  }

  /** The number of lines dropped so far. */
  get dropped(): DroppedLines {
    return this.#dropped
  }

  /** Adds a line with its line break. It may wait to be written with others. */
  add(line: string, kind: LineKind = 'log'): void {
    if (this.#isReaderGone) return
    const text = this.#formatLine === undefined ? line : this.#formatLine(line)
    if (!fits(text, this.#roomFor(kind))) {
      const what = kind === 'audit' ? 'auditEvents' : 'lines'
      this.#dropped[what] += 1
      this.#unreported[what] += 1
      return
    }
    const earlier = this.#next
    const batch = this.#batchFor(text)
    const bytes = batch.memory.write(text, batch.bytes)
    batch.bytes += bytes
    if (kind === 'audit') batch.auditBytes += bytes
    this.#waiting[kind === 'audit' ? 'audit' : 'ordinary'] += bytes
    this.#timer ??= setTimeout(writeWaiting, batchDelayMs, this)
    // Only now, because a write that does not wait may report dropped lines, which adds lines.
    if (earlier !== undefined && earlier !== batch) this.#writeOn()
  }

  /** Writes a line with its line break at once, after the waiting ones. */
  write(line: string, kind: LineKind = 'log'): void {
    this.add(line, kind)
    this.#writeSoon()
  }

  writeWaiting(): void {
    this.#timer = undefined
    this.#writeSoon()
  }

  /**
   * Resolves with `true` when all lines are written or cannot be written, and with `false` after
   * `limitMs` because nothing reads them.
   */
  flush(limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const limit = setTimeout(() => resolve(false), limitMs)
      this.#flushes.push(() => {
        clearTimeout(limit)
        resolve(true)
      })
      this.#writeSoon()
    })
  }

  /** How many bytes of lines of a kind may be added. */
  #roomFor(kind: LineKind): number {
    if (kind === 'audit') return maxWaiting.audit - this.#waiting.audit
    return (kind === 'access' ? maxWaiting.access : maxWaiting.ordinary) - this.#waiting.ordinary
  }

  /** The batch that collects lines, if the line fits into it, or else a new one. */
  #batchFor(line: string): Batch {
    if (this.#next !== undefined && !fits(line, this.#next.memory.length - this.#next.bytes)) {
      this.#full.push(this.#next)
      this.#next = undefined
    }
    this.#next ??= { memory: this.#memoryFor(line), bytes: 0, auditBytes: 0, written: 0 }
    return this.#next
  }

  #memoryFor(line: string): Buffer {
    const free = this.#free
    const bytes = Buffer.byteLength(line)
    if (free === undefined || bytes > free.length) return Buffer.allocUnsafeSlow(Math.max(bytes, this.#maxBytes))
    this.#free = undefined
    return free
  }

  /** Writes all lines, without waiting for more. */
  #writeSoon(): void {
    this.#isDue = true
    this.#writeOn()
  }

  /** Goes on writing, unless a write is under way. Each write that does not wait is a step. */
  #writeOn(): void {
    while (!this.#isWriting) {
      this.#current ??= this.#take()
      if (this.#current === undefined) {
        this.#endFlushes()
        return this.#report()
      }
      const { memory, written, bytes } = this.#current
      this.#isWriting = true
      if (!this.#mayWriteNow()) return fs.write(this.#fd, memory, written, bytes - written, null, this.#onWrite)
      if (!this.#writeNow(memory, written, bytes - written)) return
    }
  }

  #mayWriteNow(): boolean {
    const at = performance.now()
    if (at - this.#nonBlocking.at >= checkEveryMs) this.#nonBlocking = { isSet: this.#isNonBlocking(), at }
    return this.#nonBlocking.isSet
  }

  /** @returns whether it was written */
  #writeNow(memory: Buffer, from: number, bytes: number): boolean {
    try {
      return this.#settle(null, fs.writeSync(this.#fd, memory, from, bytes))
    } catch (error) {
      return this.#settle(error as NodeJS.ErrnoException, 0)
    }
  }

  /** The next batch to write. Its lines count as written. */
  #take(): Batch | undefined {
    let batch = this.#full.shift()
    if (batch === undefined && this.#isDue) {
      batch = this.#next
      this.#next = undefined
      this.#isDue = false
    }
    if (batch === undefined) return undefined
    this.#waiting.audit -= batch.auditBytes
    this.#waiting.ordinary -= batch.bytes - batch.auditBytes
    return batch
  }

  readonly #onWrite = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    if (this.#settle(error, bytes)) this.#writeOn()
  }

  /** Ends a write. Returns whether it was successful. */
  #settle(error: NodeJS.ErrnoException | null, bytes: number): boolean {
    if (error?.code === 'EAGAIN') {
      // The reader may hang now, so the next attempt reads the mode of the stream again.
      this.#nonBlocking.at = Number.NEGATIVE_INFINITY
      setTimeout(this.#onWrite, this.#retryDelayMs, null, 0)
      this.#retryDelayMs = Math.min(2 * this.#retryDelayMs, retryDelayMs.longest)
      return false
    }
    this.#isWriting = false
    if (error !== null) {
      if (error.code === 'EPIPE') this.#dropAll()
      // After another error, such as that of a full disk, the next line tries again.
      this.#endFlushes()
      return false
    }
    if (bytes > 0) this.#retryDelayMs = retryDelayMs.first
    const batch = this.#current as Batch
    batch.written += bytes
    if (batch.written === batch.bytes) {
      this.#current = undefined
      if (batch.memory.length === this.#maxBytes) this.#free = batch.memory
    }
    return true
  }

  /** Reports what was dropped, now that the reader has caught up. */
  #report(): void {
    const { lines, auditEvents } = this.#unreported
    if (lines + auditEvents === 0) return
    this.#unreported = { lines: 0, auditEvents: 0 }
    this.#onReadAgain({ lines, auditEvents })
  }

  /** Nothing will read the lines. */
  #dropAll(): void {
    this.#isReaderGone = true
    this.#full.length = 0
    this.#next = undefined
    this.#current = undefined
  }

  #endFlushes(): void {
    for (const end of this.#flushes.splice(0)) end()
  }
}

/**
 * In UTF-8, a UTF-16 code unit takes at most three bytes. Counting the bytes of a line costs more
 * than writing them.
 */
const maxBytesOfCharacter = 3

/** @param room in bytes */
function fits(line: string, room: number): boolean {
  return line.length * maxBytesOfCharacter <= room || Buffer.byteLength(line) <= room
}

function never(): boolean {
  return false
}

function writeWaiting(lines: Lines): void {
  lines.writeWaiting()
}
