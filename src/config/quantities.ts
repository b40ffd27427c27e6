const milliseconds = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const bytes = { b: 1, kb: 1024, mb: 1024 * 1024 } as const

/**
 * `30m` in milliseconds.
 * @throws {SyntaxError} names what is wrong
 */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? []
  if (unit === undefined) throw new SyntaxError('must be a duration such as 30m: a whole number and ms, s, m, h or d')
  return Number(amount) * milliseconds[unit as keyof typeof milliseconds]
}

/**
 * `16kb` in bytes.
 * @throws {SyntaxError} names what is wrong
 */
export function parseSize(text: string): number {
  const [, amount, unit] = /^(\d{1,9})(b|kb|mb)$/.exec(text) ?? []
  if (unit === undefined) throw new SyntaxError('must be a size such as 16kb: a whole number and b, kb or mb')
  return Number(amount) * bytes[unit as keyof typeof bytes]
}

/** `count` events in each period of `perMs` milliseconds. */
export interface Rate {
  readonly count: number
  readonly perMs: number
}

/**
 * `600/m` is 600 in 60,000 ms.
 * @throws {SyntaxError} names what is wrong
 */
export function parseRate(text: string): Rate {
  const [, count, unit] = /^([1-9]\d{0,8})\/(s|m|h)$/.exec(text) ?? []
  if (unit === undefined) throw new SyntaxError('must be a rate such as 600/m: a whole number per s, m or h')
  return { count: Number(count), perMs: milliseconds[unit as keyof typeof milliseconds] }
}

/** The allowed range of a quantity, both ends included. */
export interface Range {
  readonly from: string
  readonly to: string
}

/**
 * Reads a quantity and checks its range.
 * @throws {SyntaxError} names what is wrong
 */
export function parseWithin(text: string, range: Range, parse: (text: string) => number): number {
  const value = parse(text)
  if (value < parse(range.from)) throw new SyntaxError(`must be at least ${range.from}`)
  if (value > parse(range.to)) throw new SyntaxError(`must be at most ${range.to}`)
  return value
}
