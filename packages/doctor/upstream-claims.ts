import {
  type ClaimLength,
  type ClaimPath,
  type Claims,
  claimsIn,
  claimsNeeded,
  commonHeaderLimitBytes,
  type DroppedHeader,
  droppedTexts,
  errorRow,
  expectedSizes,
  fieldBytes,
  type FieldSizes,
  type HeaderConfig,
  headersWithoutValue,
  identityHeaders,
  isWithheld,
  knownLength,
  longestOf,
  type ProviderConfig,
  providerKind,
  readClaim,
  sizeText,
  tokenBytes,
  totalOf,
  type UpstreamConfig,
  usualBytes,
  usualLists,
} from '../../src/entries/doctor.ts'
import { type Finding, ok, warning } from './finding.ts'

/** The usual size of the browser's fields and the application's cookies, in bytes. */
const otherHeadersBytes = 2 * 1024

/**
 * Compares the size of the identity headers with the limit of many applications: measured with the
 * given claims, estimated without. The rule with the longest headers counts. `listed` is the
 * `claims_supported` of the provider, if present. A header counts as absent when its claim is
 * neither listed nor common, because it may be misspelt.
 */
export function headerBudgetFinding(
  upstream: UpstreamConfig,
  claims: Claims | undefined,
  listed?: readonly string[],
): Finding[] {
  const budgets = headerLists(upstream).map((headers) =>
    claims === undefined ? estimated(headers, upstream, listed) : measured(headers, upstream, claims),
  )
  const isEmpty =
    upstream.signedIdentity === undefined && headerLists(upstream).every((headers) => headers.length === 0)
  if (isEmpty) return []
  const sizes = budgets.map((budget) => budget.sizes).toSorted((one, other) => totalOf(other) - totalOf(one))[0] ?? []
  const dropped = budgets.flatMap((budget) => budget.dropped)
  const absent = [...new Set(budgets.flatMap((budget) => budget.absent))]
  const bytes = totalOf(sizes)
  const longest = longestOf(sizes)
  const id = 'upstream.header_budget'
  const what = `identity headers of ${claims === undefined ? 'an estimated ' : ''}${sizeText(bytes)}${claims === undefined ? '' : ' for these claims'}`
  const left = [
    ...(dropped.length === 0 ? [] : [droppedFinding(dropped)]),
    ...(absent.length === 0 ? [] : [absentFinding(absent, claims !== undefined)]),
  ]
  if (bytes + otherHeadersBytes <= commonHeaderLimitBytes)
    return [
      ...left,
      ok(id, `${what}: many applications accept ${sizeText(commonHeaderLimitBytes)} of headers altogether`),
    ]
  return [
    ...left,
    warning(id, `${what}; the longest ${longest.length === 1 ? 'is' : 'are'} ${longest.join(', ')}`, {
      why: `many applications reject requests with more than ${sizeText(commonHeaderLimitBytes)} of headers (400 or 431), including those of the browser and its cookies`,
      todo:
        claims === undefined
          ? 'measure with --as CLAIMS.json for a person in many groups; lower max_bytes, name fewer claims, or raise the limit of the application'
          : 'send less (filter groups at the provider), or raise the limit of the application',
    }),
  ]
}

function droppedFinding(dropped: readonly DroppedHeader[]): Finding {
  return warning(
    'upstream.headers_dropped',
    `omitted for these claims: ${[...new Set(droppedTexts(dropped))].join('; ')}`,
    {
      why: 'the application does not get them, and may treat the person as one without rights',
      todo: 'raise max_bytes of the header, use another join or encode, or reduce the claim at the provider',
    },
  )
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
  readonly sizes: FieldSizes
  readonly dropped: readonly DroppedHeader[]
  /** The names of the headers without a claim value. */
  readonly absent: readonly string[]
}

/** The headers of the upstream, and those of each rule that adds some. */
function headerLists({ headers, rules }: UpstreamConfig): readonly (readonly HeaderConfig[])[] {
  return [headers, ...rules.flatMap((rule) => (rule.headers === undefined ? [] : [rule.headers]))]
}

function measured(headers: readonly HeaderConfig[], upstream: UpstreamConfig, claims: Claims): Budget {
  const tokens = { access_token: 'x'.repeat(tokenBytes), id_token: 'x'.repeat(tokenBytes) }
  const optional = headers.map((header) => ({ ...header, required: false, tooLong: omitted(header.tooLong) }))
  const sent = identityHeaders(optional, claims, tokens)
  const fields = 'fields' in sent ? sent.fields : []
  const sizes: [string, number][] = []
  for (let at = 0; at + 1 < fields.length; at += 2)
    sizes.push([fields[at] as string, fieldBytes(fields[at] as string, (fields[at + 1] as string).length)])
  const lengthOf: ClaimLength = (path) => Buffer.byteLength(JSON.stringify(readClaim(claims, path) ?? ''))
  return {
    sizes: [...sizes, ...expectedSizes([], upstream, lengthOf)],
    dropped: sent.dropped,
    absent: headersWithoutValue(headers, { fields, dropped: sent.dropped }).map(({ name }) => name),
  }
}

/** A header that is too long must not hide the other ones. */
function omitted(tooLong: HeaderConfig['tooLong']): HeaderConfig['tooLong'] {
  return tooLong === 'refuse' ? 'omit' : tooLong
}

function estimated(
  headers: readonly HeaderConfig[],
  upstream: UpstreamConfig,
  listed: readonly string[] | undefined,
): Budget {
  // No provider lists `certificate`: these claims are those of a client certificate.
  const mayBePresent = ([claim]: ClaimPath) =>
    listed === undefined ||
    [...listed, 'certificate', ...usualLists, ...Object.keys(usualBytes)].includes(String(claim))
  const absent = headers.filter((header) => {
    const claims = claimsIn(header)
    return claims.length > 0 && !claims.some(mayBePresent)
  })
  const sent = headers.filter((header) => !absent.includes(header))
  return { sizes: expectedSizes(sent, upstream, knownLength), dropped: [], absent: absent.map(({ name }) => name) }
}

/** The claims of these, which the provider has withheld, that an upstream needs. */
export function withheldFindings(upstream: UpstreamConfig, claims: Claims = {}): Finding[] {
  const names = namesOf(claimsNeeded(upstream).filter((path) => isWithheld(claims, path)))
  if (names.length === 0) return []
  return [
    warning('upstream.claims_withheld', `the provider has withheld ${names.join(', ')} of these claims`, {
      why: 'rules that read such a claim deny access, also with none_of and not (ERR_CLAIM_WITHHELD); its headers are left out',
      todo: errorRow('ERR_CLAIM_WITHHELD').todo,
    }),
  ]
}

/** What a provider withholds from people in many groups, where the upstreams need it. */
export function overageFindings(
  { issuer, claimsFrom }: ProviderConfig,
  upstreams: readonly UpstreamConfig[],
): Finding[] {
  const needsGroups = upstreams.flatMap(claimsNeeded).some(([name]) => name === 'groups')
  const isFromApi = claimsFrom.some(({ name, isMerged }) => name === 'groups' && !isMerged)
  if (!needsGroups || isFromApi || providerKind(issuer) !== 'entra') return []
  return [
    ok(
      'provider.overage',
      'withholds groups from people in more than 200 groups: rules that read groups then deny access (ERR_CLAIM_WITHHELD). Read them from Microsoft Graph (provider.claims_from), or use app roles, or only the groups that are assigned to the application',
    ),
  ]
}

/** The scopes whose claims have other names (OpenID Connect Core 1.0 §5.4). */
const scopesByClaim = new Map([
  ['phone_number', 'phone'],
  ['phone_number_verified', 'phone'],
])

/**
 * The claims that the upstreams need, where the provider lists a scope for them that a sign-in does
 * not request. Many providers send `groups` only with the scope `groups`.
 */
export function unrequestedScopeFindings(
  { claimsFrom }: Pick<ProviderConfig, 'claimsFrom'>,
  upstreams: readonly UpstreamConfig[],
  { requested, listed }: { readonly requested: readonly string[]; readonly listed: unknown },
): Finding[] {
  const ofApis = claimsFrom.flatMap(({ name, isMerged }) => (isMerged ? [] : [String(name)]))
  const needed = namesOf(upstreams.flatMap(claimsNeeded)).filter((name) => !ofApis.includes(name))
  const missing = needed.flatMap((claim) => {
    const scope = scopesByClaim.get(claim) ?? claim
    return Array.isArray(listed) && listed.includes(scope) && !requested.includes(scope) ? [{ claim, scope }] : []
  })
  if (missing.length === 0) return []
  const claims = missing.map(({ claim }) => claim).join(', ')
  const scopes = [...new Set([...requested, ...missing.map(({ scope }) => scope)])]
  return [
    warning('provider.scope_of_claim', `lists a scope for ${claims}, which the gateway does not request`, {
      why: 'without it the claim is probably missing: rules that read it deny everybody access, and its headers are left out',
      todo: `write provider.scopes: [${scopes.join(', ')}]`,
    }),
  ]
}

function namesOf(paths: readonly ClaimPath[]): readonly string[] {
  return [...new Set(paths.map(([name]) => String(name)))]
}
