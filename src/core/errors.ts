import { type ErrorCode, errorRow } from './error-codes.ts'

/** A request that cannot be served. `message` is for the log; people see `publicText` only. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  readonly status: number
  readonly publicText: string

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
    const { status, text } = errorRow(code)
    this.status = status
    this.publicText = text
  }
}

/** A fault that only the operator can fix, such as a port in use. `message` says what to do. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** For the `default` of a switch over a closed set: a new member breaks the build there. */
export function unreachable(value: never): never {
  throw new TypeError(`not a member of the set: ${String(value)}`)
}

/** How parsers say that another program responds, and what that means. */
const wordsOfParsers: readonly (readonly [RegExp, string])[] = [
  [/^.*Expected HTTP\/.*$/s, 'what it sends is not HTTP'],
  [/Unknown RESP type.*$/s, 'what it sends is not the protocol of Redis'],
]

function plainWords(message: string): string {
  return wordsOfParsers.reduce((text, [pattern, words]) => text.replace(pattern, words), message)
}

/**
 * The messages of an error and its causes, outermost first, on one line for the log. Error codes of
 * the system or of a library are added.
 */
export function reason(error: unknown): string {
  const texts: string[] = []
  for (let at: unknown = error; at instanceof Error && texts.length < 4; at = at.cause) {
    // A GatewayError has no code here, because its code is a field of the log.
    const code = at instanceof GatewayError ? '' : codeBehind(at)
    // Node.js advises an option of its own, which the gateway does not need.
    const message = at.message.replace(/; if the root CA is installed locally, .*$/s, '')
    const words = plainWords(message)
    const text = words === message ? `${words || at.name}${code}` : words
    if (!texts.some((known) => known.includes(text))) texts.push(text)
    if (at instanceof AggregateError && at.errors.length > 0) texts.push(reason(at.errors[0]))
  }
  return texts.length > 0 ? texts.join(': ').replaceAll(/\s+/g, ' ') : String(error)
}

function codeBehind(error: Error): string {
  const hasOne = 'code' in error && typeof error.code === 'string' && !error.message.includes(error.code)
  return hasOne ? ` (${String(error.code)})` : ''
}

/** Replaces characters that a terminal interprets, such as escape sequences. Keeps the length. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\ufffd')
}
