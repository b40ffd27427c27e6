import { claimsIn } from '../config/header-claims.ts'
import type { HeaderConfig, UpstreamConfig } from '../config/model.ts'
import type { ClaimPath, Claims, ClaimTemplate } from '../core/claims.ts'
import { type DroppedHeader, droppedTexts, headersWithoutValue, identityHeaders } from '../identity/claim-headers.ts'
import { type Finding, ok, warning } from './finding.ts'

/**
 * A common limit for all header fields of a request, in bytes. Tomcat has it (maxHttpHeaderSize),
 * and Apache httpd, nginx and gunicorn have it for a single field. Node.js allows 16 KiB.
 */
const commonLimit = 8 * 1024

/** The usual size of the browser's fields and the application's cookies, in bytes. */
const otherHeadersBytes = 2 * 1024

/** Typical lengths of claim values, in bytes; `sub` by OpenID Connect Core §2. */
const usualBytes: Readonly<Record<string, number>> = {
  sub: 255,
  email: 254,
  name: 128,
  given_name: 64,
  family_name: 64,
  middle_name: 64,
  nickname: 64,
  preferred_username: 128,
  locale: 16,
  zoneinfo: 48,
  email_verified: 5,
  phone_number: 32,
  updated_at: 16,
}

/**
 * Claims that providers send without listing them in `claims_supported`; their lists may be long.
 */
const unlistedLists: ReadonlySet<string> = new Set([
  'groups',
  'roles',
  'entitlements',
  'permissions',
  'realm_access',
  'resource_access',
  'cognito:groups',
  'wids',
])

/**
 * Compares the size of the identity headers with the limit of many applications: measured with the
 * given claims, estimated without. `listed` is the `claims_supported` of the provider, if present.
 * A header counts as absent when its claim is neither listed nor common, because it may be
 * misspelt.
 */
export function headerBudgetFinding(
  upstream: UpstreamConfig,
  claims: Claims | undefined,
  listed?: readonly string[],
): Finding[] {
  if (upstream.headers.length === 0) return []
  const { bytes, longest, dropped, absent } =
    claims === undefined ? estimated(upstream.headers, listed) : measured(upstream.headers, claims)
  const id = 'upstream.header_budget'
  const what = `identity headers of ${claims === undefined ? 'an estimated ' : ''}${kilobytes(bytes)}${claims === undefined ? '' : ' for these claims'}`
  const left = [
    ...(dropped.length === 0 ? [] : [droppedFinding(dropped)]),
    ...(absent.length === 0 ? [] : [absentFinding(absent, claims !== undefined)]),
  ]
  if (bytes + otherHeadersBytes <= commonLimit)
    return [...left, ok(id, `${what}: many applications accept ${kilobytes(commonLimit)} of headers altogether`)]
  return [
    ...left,
    warning(id, `${what}; the longest ${longest.length === 1 ? 'is' : 'are'} ${longest.join(', ')}`, {
      why: `many applications reject requests with more than ${kilobytes(commonLimit)} of headers (400 or 431), including those of the browser and its cookies`,
      todo:
        claims === undefined
          ? 'measure with --as CLAIMS.json for a person in many groups; lower max_bytes of these headers, or raise the limit of the application'
          : 'send less (filter groups at the provider), or raise the limit of the application',
    }),
  ]
}

function droppedFinding(dropped: readonly DroppedHeader[]): Finding {
  return warning('upstream.headers_dropped', `omitted for these claims: ${droppedTexts(dropped).join('; ')}`, {
    why: 'the application does not get them, and may treat the person as one without rights',
    todo: 'raise max_bytes of the header, use another join or encode, or reduce the claim at the provider',
  })
}

function absentFinding(names: readonly string[], isMeasured: boolean): Finding {
  const id = 'upstream.header_claims'
  if (isMeasured) return ok(id, `omitted, because these claims have no value for them: ${names.join(', ')}`)
  return warning(
    id,
    `not counted, because the provider does not list their claims (claims_supported): ${names.join(', ')}`,
    {
      why: 'a header is never sent when its claim is always absent; some providers do not list all of their claims',
      todo: 'compare the names with the claims at the provider, and check whether a scope or mapper is needed; the log names absent claims in headers.claim_absent',
    },
  )
}

interface Budget {
  readonly bytes: number
  readonly dropped: readonly DroppedHeader[]
  /** The names of the headers without a claim value. */
  readonly absent: readonly string[]
  /** The names of the longest headers. */
  readonly longest: readonly string[]
}

function measured(headers: readonly HeaderConfig[], claims: Claims): Budget {
  const sent = identityHeaders(
    headers.map((header) => ({ ...header, required: false })),
    claims,
    { access_token: 'x'.repeat(tokenBytes), id_token: 'x'.repeat(tokenBytes) },
  )
  const fields = 'fields' in sent ? sent.fields : []
  const sizes: [string, number][] = []
  for (let at = 0; at + 1 < fields.length; at += 2)
    sizes.push([fields[at] as string, lineBytes(fields[at] as string, (fields[at + 1] as string).length)])
  const absent = headersWithoutValue(headers, { fields, dropped: sent.dropped })
  return budgetOf(sizes, sent.dropped, absent)
}

function estimated(headers: readonly HeaderConfig[], listed: readonly string[] | undefined): Budget {
  const mayBePresent = ([claim]: ClaimPath) =>
    listed === undefined || [...listed, ...unlistedLists, ...Object.keys(usualBytes)].includes(String(claim))
  const absent = headers.filter((header) => {
    const claims = claimsIn(header)
    return claims.length > 0 && !claims.some(mayBePresent)
  })
  const sent = headers.filter((header) => !absent.includes(header))
  return budgetOf(
    sent.map((header) => [header.name, lineBytes(header.name, maxValueBytes(header))]),
    [],
    absent,
  )
}

/** A name, a colon, a space, the value, CR and LF. */
function lineBytes(name: string, valueBytes: number): number {
  return name.length + valueBytes + 4
}

/** An IPv6 address, or a host name with its port, is hardly ever longer. */
const factBytes = 64

/** A JSON Web Token with a few roles usually has this size. */
const tokenBytes = 2 * 1024

function maxValueBytes(header: HeaderConfig): number {
  const { source } = header
  switch (source.kind) {
    case 'claim':
      return maxClaimsBytes([source.path], header)
    case 'first_of':
      return Math.max(...source.firstOf.map((path) => maxClaimsBytes([path], header)))
    case 'template':
      return maxClaimsBytes(source.template, header)
    case 'constant':
      return Buffer.byteLength(source.value)
    case 'request':
      return factBytes
    case 'basic':
      return Math.ceil((maxClaimsBytes(source.user, header) + source.password.length) * 1.4)
    case 'bearer':
      return tokenBytes
  }
}

/** Encodings other than UTF-8 and Latin-1 write up to three characters for a byte. */
function maxClaimsBytes(template: ClaimTemplate, { encode, maxBytes }: HeaderConfig): number {
  const factor = encode === 'utf8' || encode === 'latin1' ? 1 : 3
  let bytes = 0
  for (const part of template) {
    const claim = typeof part === 'string' ? undefined : part.length === 1 ? usualBytes[String(part[0])] : undefined
    if (typeof part !== 'string' && claim === undefined) return maxBytes
    bytes += factor * (typeof part === 'string' ? Buffer.byteLength(part) : (claim ?? 0))
  }
  return Math.min(bytes, maxBytes)
}

function budgetOf(
  sizes: readonly (readonly [string, number])[],
  dropped: readonly DroppedHeader[],
  absent: readonly HeaderConfig[],
): Budget {
  const bytes = sizes.reduce((sum, [, size]) => sum + size, 0)
  const longest = sizes.filter(([, size]) => size >= 1024).map(([name]) => name)
  return {
    bytes,
    dropped,
    absent: absent.map(({ name }) => name),
    longest: longest.length > 0 ? longest : sizes.map(([name]) => name),
  }
}

function kilobytes(bytes: number): string {
  return bytes < 1024 ? `${bytes} bytes` : `${(bytes / 1024).toFixed(1)} KiB`
}
