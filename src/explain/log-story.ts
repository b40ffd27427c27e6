import { errorRow, isErrorCode } from '../core/error-codes.ts'
import { objectIn } from '../core/json.ts'
import type { CutReason } from '../proxy/live-streams.ts'

/** A parsed line of the log. */
export type LogLine = Readonly<Record<string, unknown>>

/** What the log says about one request. */
export interface Story {
  readonly request: string
  /** In the order of the log. */
  readonly lines: readonly LogLine[]
  /** One sentence for each event. */
  readonly told: readonly string[]
  readonly code?: string
  /** The place of the rule that denied the request. */
  readonly rule?: string
  readonly advice?: Advice
}

/** Collects the log lines about one request, and about the end of its session. */
export class LogStory {
  readonly #request: string
  readonly #lines: LogLine[] = []
  readonly #endings = new Map<unknown, LogLine>()

  constructor(request: string) {
    this.#request = request
  }

  /** Adds a line of the log. A prefix that a container runtime writes is ignored. */
  add(text: string): void {
    const mayMatch = text.includes(this.#request)
    const mayBeEnding = text.includes('"session.ended"') || text.includes('"key.ended"')
    if (!mayMatch && !mayBeEnding) return
    const line = parsed(text)
    if (line === undefined) return
    if (line['request'] === this.#request) this.#lines.push(line)
    else if (line['msg'] === 'session.ended' || line['msg'] === 'key.ended') this.#endings.set(line['session'], line)
  }

  /** `undefined` when the log has no line about the request. */
  story(): Story | undefined {
    if (this.#lines.length === 0) return undefined
    const code = this.#field('code')
    const rule = this.#field('rule')
    const advice = code === undefined ? undefined : adviceOn(code)
    const ending = this.#endings.get(this.#field('session'))
    // Lines with the same event repeat each other.
    const unique = this.#lines.filter(
      ({ msg }, index) => index === this.#lines.findIndex((line) => line['msg'] === msg),
    )
    const told = [...unique.map(sentence), ...(code === 'session_ended' && ending ? [endingSentence(ending)] : [])]
    return {
      request: this.#request,
      lines: this.#lines,
      told,
      ...(code !== undefined && { code }),
      ...(rule !== undefined && { rule }),
      ...(advice !== undefined && { advice }),
    }
  }

  #field(name: string): string | undefined {
    const found = this.#lines.find((line) => line[name] !== undefined)?.[name]
    return found === undefined ? undefined : String(found)
  }
}

function parsed(text: string): LogLine | undefined {
  const start = text.indexOf('{')
  return start < 0 ? undefined : objectIn(text.slice(start))
}

function sentence(line: LogLine): string {
  const text = (name: string) => String(line[name] ?? 'unknown')
  const when = text('time')
  const of = line['upstream'] === undefined ? '' : ` of ${text('upstream')}`
  const named = line['upstream'] === undefined ? '' : ` ${text('upstream')}`
  switch (line['msg']) {
    case 'request.refused':
    case 'request.failed': {
      const session = line['session'] === undefined ? '' : `, for the session ${text('session')}`
      return `${when}  refused with ${text('code')}${session}: ${text('reason')}`
    }
    case 'access.denied':
      return `${when}  ${text('method')} ${text('path')} was denied to ${text('sub')} ${byRule(line)}${of}: ${text('reason')}`
    case 'access.would_be_denied':
      return `${when}  ${text('method')} ${text('path')} was allowed to ${text('sub')}, but would be denied ${byRule(line)}${of}: ${text('reason')}`
    case 'caller.refused':
      return `${when}  the ${callerOf(line)} was refused with ${text('code')}${of}: ${text('reason')}`
    case 'caller.would_be_refused': {
      const who = line['account'] ?? line['subject'] ?? text('sub')
      return `${when}  ${text('method')} ${text('path')} was allowed to ${String(who)}, but would be refused${of}: ${text('reason')}`
    }
    case 'upstream.failed':
      return `${when}  the upstream${named} failed at ${text('url')} with ${text('code')}: ${text('reason')}`
    case 'upstream.retried':
      return `${when}  the request went to another target, because ${text('target')} failed: ${text('reason')}`
    case 'upstream.busy':
      return `${when}  a request waited ${text('waited_ms')} ms for a connection to the upstream${named}: ${text('reason')}`
    case 'sign_in.failed':
    case 'sign_in.not_started':
      return `${when}  the sign-in failed with ${text('code')}: ${text('reason')}`
    case 'request.ended':
      return `${when}  ${endOf(line)}`
    case 'upstream.rejected_headers':
      return `${when}  the headers of the person may be too long for${named}: ${text('reason')}. ${text('hint')}`
    default:
      return `${when}  ${text('msg')}${line['reason'] === undefined ? '' : `: ${text('reason')}`}`
  }
}

function callerOf({ caller }: LogLine): string {
  return String(caller ?? 'caller').replace('_', ' ')
}

function byRule({ rule, rule_name }: LogLine): string {
  const name = rule_name === undefined ? '' : ` "${String(rule_name)}"`
  return rule === 'default' ? 'where no rule matches' : `by the rule${name} at ${String(rule)}`
}

function endOf(line: LogLine): string {
  const text = (name: string) => String(line[name] ?? 'unknown')
  const what = `${text('method')} ${text('host')}${text('path')}`
  const held = line['caller'] === 'key' ? 'key' : 'session'
  const who = `${line['session'] === undefined ? 'without a session' : `with the ${held} ${text('session')}`}, from ${text('client')}`
  const isOurs = line['upstream'] === undefined || text('code').startsWith('ERR_')
  const by = isOurs ? 'by the gateway' : `by ${text('upstream')}`
  const time = `after ${text('ms')} ms`
  if (line['status'] === 499)
    return `${what}, ${who}: the client closed the connection ${time}, before the response began`
  const whole = line['aborted'] === true ? `, but the client did not receive all of it` : ''
  return `${what}, ${who}: status ${text('status')} ${by} ${time}${whole}`
}

function endingSentence(line: LogLine): string {
  return `${String(line['time'])}  the ${line['msg'] === 'key.ended' ? 'key' : 'session'} was ended (by: ${String(line['by'])})`
}

/** What a code means to an operator, and what to do. */
export interface Advice {
  readonly means: string
  readonly todo: string
}

/** For each reason for which the gateway closes a stream or stops an exchange. */
const adviceOnCut: Readonly<Record<CutReason, Advice>> = {
  session_ended: {
    means: 'the session, or the key, ended during the response, upload or WebSocket',
    todo: 'nothing: an ending closes these on purpose',
  },
  going_away: { means: 'the gateway was stopped', todo: 'nothing: clients reconnect' },
}

/** The advice on a code in the log: an error code, or the reason why a stream was closed. */
export function adviceOn(code: string): Advice | undefined {
  if (isErrorCode(code)) {
    const { means, todo } = errorRow(code)
    return { means, todo }
  }
  return Object.hasOwn(adviceOnCut, code) ? adviceOnCut[code as CutReason] : undefined
}
