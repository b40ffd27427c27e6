import pino from 'pino'

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

export interface LinesOptions {
  readonly fd: number
  /** Other processes write into it too. */
  readonly isShared: boolean
  /** Formats a line before it is written. */
  readonly formatLine?: ((line: string) => string) | undefined
}

/** The number of lines that were dropped because nothing read them. */
export interface DroppedLines {
  /** Lines of the log and the access log. */
  readonly lines: number
  readonly auditEvents: number
}

/** Lines that are written together, and the number of bytes of audit events among them. */
interface Batch {
  readonly text: string
  readonly bytes: number
  readonly auditBytes: number
}

/**
 * Writes lines in their order, in batches, without blocking and with bounded buffers. When nothing
 * reads them, lines are dropped and counted, those of the access log first. Audit events have their
 * own bound, so other lines never displace them.
 */
export class Lines {
  readonly #destination: ReturnType<typeof pino.destination>
  readonly #maxBytes: number
  readonly #formatLine: ((line: string) => string) | undefined
  readonly #batches: Batch[] = []
  /** The destination has not finished its last write. */
  #isBusy = false
  /** The batch that collects lines. */
  #nextText = ''
  #nextBytes = 0
  #nextAuditBytes = 0
  readonly #waiting = { ordinary: 0, audit: 0 }
  #timer: NodeJS.Timeout | undefined
  readonly #dropped = { lines: 0, auditEvents: 0 }
  #unreported = { lines: 0, auditEvents: 0 }
  #whenWritten: (() => void)[] = []

  /** @param onReadAgain receives the number of dropped lines when the reader reads again */
  constructor({ fd, isShared, formatLine }: LinesOptions, onReadAgain: (dropped: DroppedLines) => void) {
    this.#maxBytes = isShared ? maxAtomicWrite : maxBatchBytes
    this.#formatLine = formatLine
    // A synchronous write into a full pipe would block the process.
    this.#destination = pino.destination({
      fd,
      sync: false,
      minLength: 1,
      maxLength: maxWaiting.ordinary,
      ...(isShared ? { maxWrite: maxAtomicWrite } : {}),
    })
    // After an error (EPIPE, a full disk) the next write tries again.
    this.#destination.on('error', () => {
      this.#isBusy = false
      if (this.#whenWritten.length > 0) this.#pass()
    })
    this.#destination.on('drain', () => {
      this.#isBusy = false
      this.#pass()
      const { lines, auditEvents } = this.#unreported
      if (this.#isBusy || lines + auditEvents === 0) return
      this.#unreported = { lines: 0, auditEvents: 0 }
      onReadAgain({ lines, auditEvents })
    })
  }

  /** The number of lines dropped so far. */
  get dropped(): DroppedLines {
    return this.#dropped
  }

  /** Adds a line with its line break. It may wait to be written with others. */
  add(line: string, kind: LineKind = 'log'): void {
    const text = this.#formatLine === undefined ? line : this.#formatLine(line)
    const bytes = Buffer.byteLength(text)
    if (!this.#hasRoomFor(bytes, kind)) {
      const what = kind === 'audit' ? 'auditEvents' : 'lines'
      this.#dropped[what] += 1
      this.#unreported[what] += 1
      return
    }
    if (this.#nextBytes + bytes > this.#maxBytes) this.#closeBatch()
    this.#nextText += text
    this.#nextBytes += bytes
    if (kind === 'audit') this.#nextAuditBytes += bytes
    this.#waiting[kind === 'audit' ? 'audit' : 'ordinary'] += bytes
    this.#timer ??= setTimeout(writeWaiting, batchDelayMs, this)
  }

  /** Writes a line with its line break at once, after the waiting ones. */
  write(line: string, kind: LineKind = 'log'): void {
    this.add(line, kind)
    this.#closeBatch()
  }

  writeWaiting(): void {
    this.#timer = undefined
    this.#closeBatch()
  }

  /**
   * Resolves with `true` when all lines are written, or with `false` after `limitMs` because
   * nothing reads them.
   */
  flush(limitMs: number): Promise<boolean> {
    this.#closeBatch()
    return new Promise((resolve) => {
      const limit = setTimeout(() => resolve(false), limitMs)
      this.#whenWritten.push(() =>
        // `flush` also syncs, which fails on a pipe. Its callback still means that everything is
        // written.
        this.#destination.flush(() => {
          clearTimeout(limit)
          resolve(true)
        }),
      )
      this.#pass()
    })
  }

  #hasRoomFor(bytes: number, kind: LineKind): boolean {
    if (kind === 'audit') return this.#waiting.audit + bytes <= maxWaiting.audit
    return this.#waiting.ordinary + bytes <= (kind === 'access' ? maxWaiting.access : maxWaiting.ordinary)
  }

  #closeBatch(): void {
    if (this.#nextText === '') return
    this.#batches.push({ text: this.#nextText, bytes: this.#nextBytes, auditBytes: this.#nextAuditBytes })
    this.#nextText = ''
    this.#nextBytes = 0
    this.#nextAuditBytes = 0
    this.#pass()
  }

  /**
   * Passes batches to the destination while it is ready. A batch that it has taken counts as
   * written.
   */
  #pass(): void {
    while (!this.#isBusy) {
      const batch = this.#batches.shift()
      if (batch === undefined) break
      this.#waiting.audit -= batch.auditBytes
      this.#waiting.ordinary -= batch.bytes - batch.auditBytes
      // When the reader is gone, pino replaces `write` by a function without a result.
      this.#isBusy = this.#destination.write(batch.text) === false
    }
    if (this.#batches.length > 0) return
    for (const written of this.#whenWritten.splice(0)) written()
  }
}

function writeWaiting(lines: Lines): void {
  lines.writeWaiting()
}
