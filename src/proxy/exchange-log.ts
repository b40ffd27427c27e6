import { addressSetting } from '../config/target-addresses.ts'
import { asHint, connectionAdvice } from '../core/connection-advice.ts'
import type { GatewayError } from '../core/errors.ts'
import type { Pass } from '../gate/admission.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import type { ConnectionSlot } from './connection-slots.ts'
import type { SkipReason } from './content-rewriter.ts'
import type { ProxyParts } from './proxy-parts.ts'
import type { Upstream } from './upstream.ts'

export interface LoggedExchange {
  readonly pass: Pass
  readonly facts: RequestFacts
  readonly record: RequestRecord
  readonly parts: Pick<ProxyParts, 'log'>
}

/** Which limit of an upstream is reached: the setting, and the reason for the log. */
export type BusyReason = keyof typeof busyReasons

const busyReasons = {
  queue: ['max_connections', 'too many requests wait for a connection'],
  wait: ['max_connections', 'no connection became free in most of response_timeout'],
  long_wait: ['max_connections', 'requests wait long for a connection'],
  streams: ['max_streams', 'too many event streams, tunnels and long exchanges are open'],
} as const

/** `hasBegun`: the client has the beginning of the response. */
export function logFailed(
  { pass, facts, record, parts }: LoggedExchange,
  error: GatewayError,
  hasBegun: boolean,
): void {
  const { name, url } = pass.upstream
  const advice = connectionAdvice(
    { why: error.message, hasBegun },
    addressSetting(pass.upstream),
    `upstreams.${name}.ca_file`,
  )
  parts.log.warn('upstream.failed', {
    request: record.id,
    upstream: name,
    url: record.target ?? url.origin,
    method: facts.method,
    code: error.code,
    reason: error.message,
    ...(error.code === 'ERR_UPSTREAM_UNREACHABLE' ? { hint: asHint(advice) } : {}),
  })
}

/** The request goes to another target, because this one has failed. */
export function logRetried({ pass, facts, record, parts }: LoggedExchange, failed: string, error: GatewayError): void {
  parts.log.warn('upstream.retried', {
    request: record.id,
    upstream: pass.upstream.name,
    target: failed,
    method: facts.method,
    code: error.code,
    reason: error.message,
  })
}

/** Why the session does not keep cookies, and what to do about it. */
const unkept = {
  lost: {
    reason: 'the application set session cookies in a response to a request without a session',
    hint: 'Require a sign-in for this path in UPSTREAM.rules (access: signed_in), or take the cookies out of session_cookies.',
  },
  rejected: {
    reason: 'the attributes of the session cookie are invalid, or its Domain is not the host of the request',
    hint: 'If the Domain is an address of the application, name this address in UPSTREAM.also_known_as.',
  },
} as const

/** Logs once for each reason that cookies of an upstream are dropped. */
export function logUnkeptCookies(
  { pass, record, parts }: LoggedExchange,
  names: readonly string[],
  why: keyof typeof unkept,
  upstream: Upstream,
): void {
  if (!upstream.isFirst(why)) return
  const { name } = pass.upstream
  const { reason, hint } = unkept[why]
  parts.log.warn('cookies.not_kept', {
    request: record.id,
    upstream: name,
    cookies: names,
    reason,
    hint: hint.replace('UPSTREAM', `upstreams.${name}`),
  })
}

const skipReasons = {
  range: 'the response is a part of the content (206)',
  no_transform: 'the response has Cache-Control: no-transform',
  charset: 'the charset does not write ASCII characters as single bytes',
  coding: 'the Content-Encoding is unknown, or is more than one',
  policy: 'the Content-Security-Policy does not allow scripts and requests of its own origin',
} as const

export function logNotRewritten(
  { pass, facts, record, parts }: LoggedExchange,
  reason: SkipReason,
  upstream: Upstream,
): void {
  if (!upstream.isFirst(reason)) return
  parts.log.warn('content.not_rewritten', {
    request: record.id,
    upstream: pass.upstream.name,
    path: facts.target.path,
    reason: skipReasons[reason],
    hint:
      reason === 'policy'
        ? "Such pages get no notice of the end of a session (session_notice). Add 'self' to script-src and connect-src in the application, or in response_headers. This is logged once."
        : 'This is logged once for each reason. Such content stays as the application writes it.',
  })
}

/** Cookies of the browser that belong to another session. */
export function logWithheldCookies({ pass, record, parts }: LoggedExchange, names: readonly string[]): void {
  if (names.length > 0)
    parts.log.debug('cookies.withheld', { request: record.id, upstream: pass.upstream.name, cookies: names })
}

export function logBusy(
  { pass, record, parts }: LoggedExchange,
  busy: BusyReason,
  { load }: Upstream,
  slot: ConnectionSlot | undefined,
): void {
  const [setting, reason] = busyReasons[busy]
  const { name } = pass.upstream
  parts.log.warn('upstream.busy', {
    request: record.id,
    upstream: name,
    reason,
    waited_ms: Math.round(slot?.waitedMs ?? 0),
    ...load,
    hint: `Find out which requests take long. Raise upstreams.${name}.${setting} if the application can take more at a time.`,
  })
}

/** Logs once for each upstream that it may reject requests because of their identity headers. */
export function logRejectedHeaders({ pass, record, parts }: LoggedExchange, status: number, upstream: Upstream): void {
  const fields = pass.identity.flatMap((value, index, all) => (index % 2 === 1 ? [[all[index - 1] ?? '', value]] : []))
  const bytes = fields.flat().join('').length
  const [name, value] = fields.toSorted(([, a = ''], [, b = '']) => b.length - a.length)[0] ?? []
  // A 400 to short headers has another cause.
  if (value === undefined || (status !== 431 && bytes < 4096) || !upstream.isFirst('headers')) return
  parts.log.warn('upstream.rejected_headers', {
    request: record.id,
    upstream: pass.upstream.name,
    header: name,
    header_bytes: value.length,
    reason: `it responded with ${status}, and its identity headers have ${bytes} bytes, ${name} the most`,
    hint: `Shorten ${name} (max_bytes, or fewer values), or raise the limit of the application. Cookies count too. This is logged once.`,
  })
}
