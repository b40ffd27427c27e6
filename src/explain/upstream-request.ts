import { upstreamAt } from '../config/hosts.ts'
import type { HeaderConfig } from '../config/model/header.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { fieldsOf, kindOfField, withheldReason } from '../core/header-fields.ts'
import type { Pass } from '../gate/admission.ts'
import { cookieNames, isWithheld } from '../http/cookies.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { canonicalName, reservedNames } from '../identity/reserved-names.ts'
import { Addresses } from '../proxy/addresses.ts'
import { RequestFields, upstreamHeaders } from '../proxy/upstream-headers.ts'
import type { SessionCookie } from '../session/cookies/cookie.ts'
import { headerPairs, shownHeaders } from './header-text.ts'
import type { SuppliedRequest } from './request.ts'

type Header = readonly [name: string, value: string]

/** The request that the upstream would get. */
export interface UpstreamRequest {
  readonly name: string
  readonly url: string
  /** The identity headers. */
  readonly identity: readonly Header[]
  /** The size of the identity headers together, in bytes. */
  readonly identityBytes: number
  /** Configured identity headers that are not sent, with the reason. */
  readonly absent: readonly Header[]
  /** Header fields of the client that are removed, with the reason. */
  readonly removed: readonly Header[]
  /** All other header fields. */
  readonly others: readonly Header[]
}

/** The parts of the gateway that decide about header fields. */
export interface HeaderParts {
  /** The headers of the rule, or of the upstream. */
  readonly configured: readonly HeaderConfig[]
  readonly upstreams: readonly UpstreamConfig[]
  readonly reservedPrefix: string
  readonly cookie: SessionCookie
  /** Whether the gateway writes trace headers. */
  readonly isTracing: boolean
}

/** The gateway generates these for each request. */
const requestId = '(generated)'
const trace = { traceParent: '(generated, or continued from a trusted proxy)', state: undefined }

/**
 * The header fields of an admitted request, written by the code that serves requests, and the
 * reason for each one that is missing.
 */
export function upstreamRequest(
  request: SuppliedRequest,
  facts: RequestFacts,
  pass: Pass,
  parts: HeaderParts,
): UpstreamRequest {
  const { upstreams, reservedPrefix, cookie, isTracing } = parts
  const { upstream, identity } = pass
  const reserved = reservedNames(upstream, upstreams)
  const addresses = new Addresses(upstreamAt(upstream, facts.host), reservedPrefix)
  const sent = upstreamHeaders(request.rawHeaders, {
    fields: new RequestFields(reserved, isTracing),
    isWithheldCookie: (name) => cookie.isGatewayCookie(name) || isWithheld(upstream.sessionCookies, name),
    keptCookies: undefined,
    withholdsAuthorization: pass.caller !== undefined,
    host: upstream.hostHeader === 'client' ? facts.forwarded.host : upstream.url.host,
    forwarded: facts.forwarded,
    requestId,
    loopMarker: '(marks the upstream)',
    trace: isTracing ? trace : undefined,
  })
  const others = addresses.request(sent, facts.forwarded.host)
  return {
    name: upstream.name,
    url: upstream.forwardAuth
      ? `${facts.target.path}${facts.target.query} (another proxy carries the request)`
      : upstream.url.origin + addresses.path(facts.target.path, facts.target.query),
    identity: shownHeaders(identity, upstream),
    // Each field adds a colon, a space, CR and LF.
    identityBytes: identity.reduce((sum, text) => sum + text.length + 2, 0),
    absent: absentHeaders(parts.configured, pass),
    removed: removedHeaders(request.rawHeaders, others, reserved, upstream, parts),
    others: headerPairs(others),
  }
}

function absentHeaders(
  configured: readonly HeaderConfig[],
  { identity, dropped = [], session, caller }: Pass,
): Header[] {
  const sent = new Set(identity.filter((_, index) => index % 2 === 0))
  return configured
    .filter(({ name }) => !sent.has(name))
    .map(({ name, source }) => {
      const why = dropped.find((header) => header.name === name)?.why
      if (source.kind === 'request') return [name, 'the path of the upstream is /']
      if (caller === 'service_account' && (source.kind === 'bearer' || source.kind === 'exchanged'))
        return [name, 'a service account has no token']
      return [
        name,
        why ??
          (session !== undefined || caller !== undefined ? 'the claim has no value' : 'this rule forwards no identity'),
      ]
    })
}

function removedHeaders(
  received: readonly string[],
  others: readonly string[],
  reserved: ReadonlySet<string>,
  upstream: UpstreamConfig,
  { cookie, isTracing }: HeaderParts,
): Header[] {
  const kept = new Set(others.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()))
  return headerPairs(received).flatMap(([name, value]): Header[] => {
    const lower = name.toLowerCase()
    if (lower === 'host') return []
    if (lower === 'cookie') return removedCookies(name, cookieNames(value, ''), upstream, cookie)
    // The gateway writes fields such as X-Forwarded-For itself.
    const isRewritten = kindOfField(lower) === 'rewritten' || (isTracing && fieldsOf('trace').includes(lower))
    if (kept.has(lower) && !isRewritten) return []
    return [[name, removalReason(lower, reserved)]]
  })
}

function removedCookies(
  field: string,
  names: readonly string[],
  upstream: UpstreamConfig,
  cookie: SessionCookie,
): Header[] {
  const kept = names.filter((name) => isWithheld(upstream.sessionCookies, name))
  return [
    ...(names.some(cookie.isGatewayCookie) ? [[field, 'the gateway removes its own cookies'] as const] : []),
    ...(kept.length > 0 ? [[field, `the session keeps ${kept.join(', ')}, not the browser`] as const] : []),
  ]
}

function removalReason(name: string, reserved: ReadonlySet<string>): string {
  if (reserved.has(canonicalName(name))) return 'only the gateway sets this field'
  if (name === 'authorization') return 'these credentials are for the gateway'
  if (kindOfField(name) === 'trace') return 'the gateway writes this field, from trusted sources only'
  return withheldReason(name) ?? 'the Connection field names it, so it is about one connection only'
}
