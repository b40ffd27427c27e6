import type { HeaderConfig, UpstreamConfig } from '../config/model.ts'
import type { Claims } from '../core/claims.ts'
import { headersWithoutValue, identityHeaders } from '../identity/claim-headers.ts'
import { type Finding, ok, warning } from './finding.ts'

/**
 * All header lines of a request together, in bytes, as many applications take them at most:
 * Tomcat's maxHttpHeaderSize, a line of Apache, nginx and gunicorn. Node takes 16 KiB.
 */
const commonLimit = 8 * 1024

/** What a browser's own headers and the application's cookies need of it, usually. */
const othersNeed = 2 * 1024

/**
 * How long the values of claims are that have a usual length, in bytes; `sub` by OpenID Connect
 * Core §2.
 */
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

/** Claims that providers send without listing them: lists, which may be long. */
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
 * How much of what applications take as headers the identity may need: measured with somebody's
 * claims, estimated without. `listed`: the claims that the provider says it has
 * (`claims_supported`); `undefined` when it does not say so. A header of a claim that is not among
 * them, and of no usual name, counts as absent: it may be misspelt.
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
  if (bytes + othersNeed <= commonLimit)
    return [...left, ok(id, `${what}: many applications take ${kilobytes(commonLimit)} of headers in all`)]
  return [
    ...left,
    warning(id, `${what}; the longest ${longest.length === 1 ? 'is' : 'are'} ${longest.join(', ')}`, {
      why: `many applications refuse requests with more than ${kilobytes(commonLimit)} of headers (400 or 431), the browser’s own and its cookies included`,
      todo:
        claims === undefined
          ? 'measure with --as CLAIMS.json of somebody in many groups; lower max_bytes of these headers, or raise the application’s limit'
          : 'send less (groups by a filter at the provider), or raise the application’s limit',
    }),
  ]
}

function droppedFinding(dropped: readonly string[]): Finding {
  return warning('upstream.headers_dropped', `left out for these claims: ${dropped.join('; ')}`, {
    why: 'the application is not told, and may take the person for somebody without rights',
    todo: 'raise max_bytes of the header, choose another join or encode, or have the provider send less',
  })
}

function absentFinding(names: readonly string[], isMeasured: boolean): Finding {
  const id = 'upstream.header_claims'
  if (isMeasured) return ok(id, `without a value for these claims, and so left out: ${names.join(', ')}`)
  return warning(
    id,
    `not counted, because the provider does not list their claims (claims_supported): ${names.join(', ')}`,
    {
      why: 'a header whose claim never comes is never sent; some providers do not list all claims they have',
      todo: 'compare the names with the claims at the provider, and see whether a scope or mapper is needed; headers.claim_absent in the log says which never came',
    },
  )
}

interface Budget {
  readonly bytes: number
  /** What was left out, and why: never the value. */
  readonly dropped: readonly string[]
  /** The names of the headers without a claim that has a value. */
  readonly absent: readonly string[]
  /** The names of the headers that need most of it. */
  readonly longest: readonly string[]
}

function measured(headers: readonly HeaderConfig[], claims: Claims): Budget {
  const written = identityHeaders(
    headers.map((header) => ({ ...header, required: false })),
    claims,
  )
  const lines = 'lines' in written ? written.lines : []
  const sizes: [string, number][] = []
  for (let at = 0; at + 1 < lines.length; at += 2)
    sizes.push([lines[at] as string, lineBytes(lines[at] as string, (lines[at + 1] as string).length)])
  const absent = headersWithoutValue(headers, { lines, dropped: written.dropped })
  return budgetOf(sizes, written.dropped, absent)
}

function estimated(headers: readonly HeaderConfig[], listed: readonly string[] | undefined): Budget {
  const mayCome = (part: HeaderConfig['template'][number]) =>
    typeof part !== 'string' &&
    (listed === undefined || [...listed, ...unlistedLists, ...Object.keys(usualBytes)].includes(String(part[0])))
  const absent = headers.filter(({ template }) => !template.some(mayCome))
  const sent = headers.filter((header) => !absent.includes(header))
  return budgetOf(
    sent.map((header) => [header.name, lineBytes(header.name, mostBytes(header))]),
    [],
    absent,
  )
}

/** A name, a colon, a space, the value and a line break of two. */
function lineBytes(name: string, valueBytes: number): number {
  return name.length + valueBytes + 4
}

/** Encodings other than UTF-8 make up to three characters of a byte. */
function mostBytes({ template, encode, maxBytes }: HeaderConfig): number {
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
  dropped: readonly string[],
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
