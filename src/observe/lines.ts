import pino from 'pino'

/**
 * What a line is about. Lines for one purpose cannot take the place of those for another: see
 * {@link Lines}.
 */
export type LineKind = 'access' | 'log' | 'audit'

/**
 * How much may wait to be written, in bytes; a line on top is dropped. Lines of the access log and
 * others share a place, of which those of the access log get one half: they are dropped first.
 * Audit events have a place of their own.
 */
const mostWaiting = { access: 512 * 1024, ordinary: 1024 * 1024, audit: 4 * 1024 * 1024 }
/**
 * How long a line waits for others to be written together with it, in ms, and how much of them may
 * come together, in bytes.
 */
const companyMs = 10
const mostTogether = 64 * 1024
/**
 * Processes that write into one pipe do not tear one another's lines apart as long as each writes
 * no more than this at once: POSIX, PIPE_BUF.
 */
const mostAtOnceIntoSharedPipe = 4096

export interface LinesOptions {
  readonly fd: number
  /** Others write into it, too. */
  readonly isShared: boolean
  /** What is written for a line. */
  readonly shape?: ((line: string) => string) | undefined
}

/** How many lines were dropped because nobody read them. */
export interface DroppedLines {
  /** Of the log and the access log. */
  readonly lines: number
  readonly auditEvents: number
}

/** Lines that are written together, and how many bytes of them are audit events. */
interface Batch {
  readonly text: string
  readonly bytes: number
  readonly auditBytes: number
}

/**
 * Lines on their way out of the process, in the order in which they came: many at once, never
 * waited for, and bounded. When nobody reads them they are dropped, and counted: first those of the
 * access log. Audit events have bounds of their own, so that no number of other lines removes one.
 */
export class Lines {
  readonly #destination: ReturnType<typeof pino.destination>
  readonly #most: number
  readonly #shape: ((line: string) => string) | undefined
  readonly #batches: Batch[] = []
  /** The destination has not written yet what it was given. */
  #isBusy = false
  #together = ''
  #bytesTogether = 0
  #auditBytesTogether = 0
  readonly #waiting = { ordinary: 0, audit: 0 }
  #timer: NodeJS.Timeout | undefined
  readonly #dropped = { lines: 0, auditEvents: 0 }
  #untold = { lines: 0, auditEvents: 0 }
  #whenWritten: (() => void)[] = []

  /** `onReadAgain` is told how many lines were dropped as soon as the reader is back. */
  constructor({ fd, isShared, shape }: LinesOptions, onReadAgain: (dropped: DroppedLines) => void) {
    this.#most = isShared ? mostAtOnceIntoSharedPipe : mostTogether
    this.#shape = shape
    // Written synchronously, a pipe that is full would stop the whole process.
    this.#destination = pino.destination({
      fd,
      sync: false,
      minLength: 1,
      maxLength: mostWaiting.ordinary,
      ...(isShared ? { maxWrite: mostAtOnceIntoSharedPipe } : {}),
    })
    // EPIPE and a full disk: what is written next tries again.
    this.#destination.on('error', () => {
      this.#isBusy = false
      if (this.#whenWritten.length > 0) this.#pass()
    })
    this.#destination.on('drain', () => {
      this.#isBusy = false
      this.#pass()
      const { lines, auditEvents } = this.#untold
      if (this.#isBusy || lines + auditEvents === 0) return
      this.#untold = { lines: 0, auditEvents: 0 }
      onReadAgain({ lines, auditEvents })
    })
  }

  /** How many lines were dropped so far. */
  get dropped(): DroppedLines {
    return this.#dropped
  }

  /** Takes a line, its line break included, that may wait a moment for others. */
  add(line: string, kind: LineKind = 'log'): void {
    const text = this.#shape === undefined ? line : this.#shape(line)
    const bytes = Buffer.byteLength(text)
    if (!this.#hasRoomFor(bytes, kind)) {
      const what = kind === 'audit' ? 'auditEvents' : 'lines'
      this.#dropped[what] += 1
      this.#untold[what] += 1
      return
    }
    if (this.#bytesTogether + bytes > this.#most) this.#writeTogether()
    this.#together += text
    this.#bytesTogether += bytes
    if (kind === 'audit') this.#auditBytesTogether += bytes
    this.#waiting[kind === 'audit' ? 'audit' : 'ordinary'] += bytes
    this.#timer ??= setTimeout(writeWaiting, companyMs, this)
  }

  /** Takes a line, its line break included, that is written at once, after those that wait. */
  write(line: string, kind: LineKind = 'log'): void {
    this.add(line, kind)
    this.#writeTogether()
  }

  writeWaiting(): void {
    this.#timer = undefined
    this.#writeTogether()
  }

  /**
   * Resolves when all lines are written, or with `false` after `limitMs`: whoever should read them
   * does not.
   */
  flush(limitMs: number): Promise<boolean> {
    this.#writeTogether()
    return new Promise((resolve) => {
      const limit = setTimeout(() => resolve(false), limitMs)
      this.#whenWritten.push(() =>
        // It also syncs, which a pipe refuses: that it answers at all says that everything is
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
    if (kind === 'audit') return this.#waiting.audit + bytes <= mostWaiting.audit
    return this.#waiting.ordinary + bytes <= (kind === 'access' ? mostWaiting.access : mostWaiting.ordinary)
  }

  #writeTogether(): void {
    if (this.#together === '') return
    this.#batches.push({ text: this.#together, bytes: this.#bytesTogether, auditBytes: this.#auditBytesTogether })
    this.#together = ''
    this.#bytesTogether = 0
    this.#auditBytesTogether = 0
    this.#pass()
  }

  /**
   * Gives the destination what it takes: what it has not written yet cannot be told apart any more.
   */
  #pass(): void {
    while (!this.#isBusy) {
      const batch = this.#batches.shift()
      if (batch === undefined) break
      this.#waiting.audit -= batch.auditBytes
      this.#waiting.ordinary -= batch.bytes - batch.auditBytes
      // pino replaces `write` by a function that returns nothing once the reader is gone.
      this.#isBusy = this.#destination.write(batch.text) === false
    }
    if (this.#batches.length > 0) return
    for (const written of this.#whenWritten.splice(0)) written()
  }
}

function writeWaiting(lines: Lines): void {
  lines.writeWaiting()
}
