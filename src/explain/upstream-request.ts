import type { HeaderConfig, UpstreamConfig } from '../config/model.ts'
import { fieldsOf, kindOfField, withheldReason } from '../core/header-fields.ts'
import type { Admission } from '../gate/admission.ts'
import { cookieNames } from '../http/cookies.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { canonicalName, reservedNames } from '../identity/reserved-names.ts'
import { RequestFields, upstreamHeaders } from '../proxy/upstream-headers.ts'
import type { SessionCookie } from '../session/cookie.ts'
import { headerPairs } from './header-text.ts'
import type { SuppliedRequest } from './request.ts'

type Header = readonly [name: string, value: string]

/** What the application would be asked. */
export interface UpstreamRequest {
  readonly name: string
  readonly url: string
  /** About the person. */
  readonly identity: readonly Header[]
  /** How long those header lines are together, in bytes. */
  readonly identityBytes: number
  /** Identity headers that are configured and not sent, and why. */
  readonly absent: readonly Header[]
  /** What the client sent and the application does not get, and why. */
  readonly removed: readonly Header[]
  /** Everything else that it gets. */
  readonly others: readonly Header[]
}

/** What the gateway does with headers of its own. */
export interface Ours {
  readonly upstreams: readonly UpstreamConfig[]
  readonly cookie: SessionCookie
  /** It takes part in traces, and says itself which. */
  readonly isTracing: boolean
}

/** Made up for each request anew. */
const requestId = '(a new one)'
const trace = { traceParent: '(a new one, or that of a trusted caller gone on with)', state: undefined }

/**
 * The header lines that an admitted request goes on with, by the code that writes them, and what
 * became of the others.
 */
export function upstreamRequest(
  request: SuppliedRequest,
  facts: RequestFacts,
  pass: Extract<Admission, { kind: 'pass' }>,
  dropped: readonly string[],
  ours: Ours,
): UpstreamRequest {
  const { upstreams, cookie, isTracing } = ours
  const { upstream, identity } = pass
  const reserved = reservedNames(upstream, upstreams)
  const others = upstreamHeaders(request.rawHeaders, {
    fields: new RequestFields(reserved, isTracing),
    isGatewayCookie: cookie.isOurs,
    host: upstream.hostHeader === 'client' ? facts.forwarded.host : upstream.url.host,
    forwarded: facts.forwarded,
    requestId,
    loopMarker: '(marks the upstream)',
    trace: isTracing ? trace : undefined,
  })
  return {
    name: upstream.name,
    url: `${upstream.url.origin}${facts.target.path}${facts.target.query}`,
    identity: headerPairs(identity),
    // Each line has a colon, a space and a line break of two beside it.
    identityBytes: identity.reduce((sum, text) => sum + text.length + 2, 0),
    absent: absentHeaders(upstream.headers, identity, dropped, pass.session !== undefined),
    removed: removedHeaders(request.rawHeaders, others, reserved, ours),
    others: headerPairs(others),
  }
}

function absentHeaders(
  configured: readonly HeaderConfig[],
  identity: readonly string[],
  dropped: readonly string[],
  isSignedIn: boolean,
): Header[] {
  const sent = new Set(identity.filter((_, index) => index % 2 === 0))
  return configured
    .filter(({ name }) => !sent.has(name))
    .map(({ name }) => {
      const why = dropped.find((text) => text.startsWith(`${name}: `))?.slice(name.length + 2)
      return [name, why ?? (isSignedIn ? 'the claim has no value' : 'nobody’s identity is passed on here')]
    })
}

function removedHeaders(
  received: readonly string[],
  others: readonly string[],
  reserved: ReadonlySet<string>,
  { cookie, isTracing }: Ours,
): Header[] {
  const kept = new Set(others.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()))
  return headerPairs(received).flatMap(([name, value]): Header[] => {
    const lower = name.toLowerCase()
    if (lower === 'host') return []
    if (lower === 'cookie')
      return cookieNames(value, '').some(cookie.isOurs)
        ? [[name, 'the gateway’s own cookie is no business of the application']]
        : []
    // X-Forwarded-For and the like are there again, and are the gateway's now.
    const isRewritten = kindOfField(lower) === 'written_anew' || (isTracing && fieldsOf('trace').includes(lower))
    if (kept.has(lower) && !isRewritten) return []
    return [[name, whyRemoved(lower, reserved)]]
  })
}

function whyRemoved(name: string, reserved: ReadonlySet<string>): string {
  if (reserved.has(canonicalName(name))) return 'only the gateway says this'
  if (kindOfField(name) === 'trace') return 'is written by the gateway, from what it believes'
  return withheldReason(name) ?? 'is named in Connection, and ends with it'
}
