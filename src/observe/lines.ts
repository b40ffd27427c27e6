import pino from 'pino'

/** So much may wait to be written, in bytes; what comes on top is dropped. */
const mostWaiting = 1024 * 1024
/** How long a line waits for others to be written together with it, in ms, and how much of them may come together, in bytes. */
const companyMs = 10
const mostTogether = 64 * 1024
/**
 * Processes that write into one pipe do not tear one another's lines apart as long as each writes no more than this at once:
 * POSIX, PIPE_BUF.
 */
const mostAtOnceIntoSharedPipe = 4096

export interface LinesOptions {
  readonly fd: number
  /** Others write into it, too. */
  readonly isShared: boolean
  /** What is written for a line. */
  readonly shape?: ((line: string) => string) | undefined
}

/**
 * Lines on their way out of the process, in the order in which they came: many at once, never waited for, and bounded. When
 * nobody reads them they are dropped, and counted.
 */
export class Lines {
  readonly #destination: ReturnType<typeof pino.destination>
  readonly #most: number
  readonly #shape: ((line: string) => string) | undefined
  #together = ''
  #bytesTogether = 0
  #timer: NodeJS.Timeout | undefined
  #dropped = 0
  #untold = 0

  /** `onReadAgain` is told how many lines were dropped as soon as the reader is back. */
  constructor({ fd, isShared, shape }: LinesOptions, onReadAgain: (dropped: number) => void) {
    this.#most = isShared ? mostAtOnceIntoSharedPipe : mostTogether
    this.#shape = shape
    // Written synchronously, a pipe that is full would stop the whole process.
    this.#destination = pino.destination({
      fd,
      sync: false,
      minLength: 1,
      maxLength: mostWaiting,
      ...(isShared ? { maxWrite: mostAtOnceIntoSharedPipe } : {}),
    })
    // EPIPE and a full disk.
    this.#destination.on('error', () => {})
    this.#destination.on('drop', (lines: string) => {
      const count = lines.split('\n').length - 1
      this.#dropped += count
      this.#untold += count
    })
    this.#destination.on('drain', () => {
      if (this.#untold === 0) return
      const count = this.#untold
      this.#untold = 0
      onReadAgain(count)
    })
  }

  /** How many lines were dropped so far. */
  get dropped(): number {
    return this.#dropped
  }

  /** Takes a line, its line break included, that may wait a moment for others. */
  add(line: string): void {
    const text = this.#shape === undefined ? line : this.#shape(line)
    const bytes = Buffer.byteLength(text)
    if (this.#bytesTogether + bytes > this.#most) this.#writeTogether()
    this.#together += text
    this.#bytesTogether += bytes
    this.#timer ??= setTimeout(writeWaiting, companyMs, this)
  }

  /** Takes a line, its line break included, that is written at once, after those that wait. */
  write(line: string): void {
    this.add(line)
    this.#writeTogether()
  }

  writeWaiting(): void {
    this.#timer = undefined
    this.#writeTogether()
  }

  /** Resolves when all lines are written, or with `false` after `limitMs`: whoever should read them does not. */
  flush(limitMs: number): Promise<boolean> {
    this.#writeTogether()
    return new Promise((resolve) => {
      const limit = setTimeout(() => resolve(false), limitMs)
      // It also syncs, which a pipe refuses: that it answers at all says that everything is written.
      this.#destination.flush(() => {
        clearTimeout(limit)
        resolve(true)
      })
    })
  }

  #writeTogether(): void {
    if (this.#together === '') return
    const text = this.#together
    this.#together = ''
    this.#bytesTogether = 0
    this.#destination.write(text)
  }
}

function writeWaiting(lines: Lines): void {
  lines.writeWaiting()
}
