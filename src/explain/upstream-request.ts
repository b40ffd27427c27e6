import { upstreamAt } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { HeaderConfig, HeaderSource } from '../config/model/header.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { targetName } from '../config/target-addresses.ts'
import { fieldsOf, kindOfField, withheldReason } from '../core/header-fields.ts'
import type { Pass } from '../gate/admission.ts'
import { cookieNames, isWithheld } from '../http/cookies.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { canonicalName, type ReservedNames, reservedNames } from '../identity/reserved-names.ts'
import { Addresses } from '../proxy/addresses.ts'
import { RequestFields, upstreamHeaders } from '../proxy/passed-fields.ts'
import type { SessionCookie } from '../session/cookies/session-cookie.ts'
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
interface HeaderParts {
  /** The headers of the rule, or of the upstream. */
  readonly configured: readonly HeaderConfig[]
  readonly config: GatewayConfig
  readonly cookie: SessionCookie
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
  const { config, cookie } = parts
  const { upstreams, reservedPrefix } = config
  const isTracing = config.tracing !== undefined
  const { upstream, identity } = pass
  const reserved = reservedNames(upstream, upstreams)
  const addresses = new Addresses(upstreamAt(upstream, facts.host), reservedPrefix)
  const sent = upstreamHeaders(request.rawHeaders, {
    fields: new RequestFields(reserved, isTracing),
    isWithheldCookie: (name) => cookie.isGatewayCookie(name) || isWithheld(upstream.sessionCookies, name),
    keptCookies: undefined,
    withholdsAuthorization: pass.caller !== undefined && pass.caller !== 'key',
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
      : targetsText(upstream) + addresses.path(facts.target.path, facts.target.query),
    identity: shownHeaders(identity, upstream),
    // Each field adds a colon, a space, CR and LF.
    identityBytes: identity.reduce((sum, text) => sum + text.length + 2, 0),
    absent: absentHeaders(parts.configured, pass),
    removed: removedHeaders(request.rawHeaders, others, reserved, upstream, parts),
    others: headerPairs(others),
  }
}

/** Where the request goes: to the target, or to one of them. */
function targetsText({ targets, url, resolve }: UpstreamConfig): string {
  if (resolve !== undefined) return `(each address of ${resolve.name}) ${url.origin}`
  return targets.length > 1 ? `(one of ${targets.length} targets) ${url.origin}` : targets.map(targetName).join()
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
  reserved: ReservedNames,
  upstream: UpstreamConfig,
  { cookie, config }: HeaderParts,
): Header[] {
  const isTracing = config.tracing !== undefined
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

function removalReason(name: string, reserved: ReservedNames): string {
  if (reserved.own.has(canonicalName(name))) return 'only the gateway sets this field'
  if (reserved.has(canonicalName(name))) return 'request_headers removes it'
  if (name === 'authorization') return 'these credentials are for the gateway'
  if (kindOfField(name) === 'trace') return 'the gateway writes this field, from trusted sources only'
  return withheldReason(name) ?? 'the Connection field names it, so it is about one connection only'
}

/**
 * Decodes a field value, in which each character is one byte on the wire: as UTF-8 when it is
 * valid, otherwise as Latin-1.
 */
function headerText(value: string): string {
  const bytes = Buffer.from(value, 'latin1')
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return value
  }
}

/** Converts a list of alternating names and values to pairs with decoded values. */
export function headerPairs(lines: readonly string[]): [name: string, text: string][] {
  const pairs: [string, string][] = []
  for (let at = 0; at + 1 < lines.length; at += 2)
    pairs.push([lines[at] as string, headerText(lines[at + 1] as string)])
  return pairs
}

/** {@link headerPairs} of headers that the gateway sets, without secrets and signatures. */
export function shownHeaders(
  lines: readonly string[],
  { headers, rules, signedIdentity }: Pick<UpstreamConfig, 'headers' | 'rules' | 'signedIdentity'>,
): [name: string, text: string][] {
  const all = [...headers, ...rules.flatMap((rule) => rule.headers ?? [])]
  const hidden = new Map(all.flatMap(({ name, source }) => (isSecret(source) ? [[name, '(secret)']] : [])))
  if (signedIdentity !== undefined) hidden.set(signedIdentity.header, '(signed)')
  return headerPairs(lines).map(([name, text]) => [name, hidden.get(name) ?? text])
}

function isSecret(source: HeaderSource): boolean {
  const isToken = source.kind === 'bearer' || source.kind === 'exchanged'
  return isToken || source.kind === 'basic' || (source.kind === 'constant' && source.isSecret)
}
