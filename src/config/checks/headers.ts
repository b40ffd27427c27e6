import { isReservedField, kindOfField } from '../../core/header-fields.ts'
import { claimsIn } from '../claims-in-use.ts'
import { below, type Report } from '../document/report.ts'
import { commonHeaderLimitBytes, expectedSizes, longestOf, sizeText, totalOf } from '../header-size.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { HeaderConfig } from '../model/header.ts'
import type { UpstreamConfig } from '../model/upstream.ts'
import { type Check, settingOf } from './check.ts'
import { checkBoundTokens } from './provider.ts'

/** The checks of the headers that upstreams receive. */
export const headerChecks: readonly Check[] = [
  headers,
  tokenExchange,
  peopleOfSeveralProviders,
  signedIdentity,
  headerBudget,
]

/**
 * Warns when an application identifies people by claims without the issuer. People of different
 * providers can have the same value, so the operator of one provider could impersonate people of
 * another one.
 */
function peopleOfSeveralProviders({ upstreams }: GatewayConfig, report: Report): void {
  for (const { name, providers, headers } of upstreams) {
    const at = settingOf(name, 'headers')
    const claims = headers.flatMap(claimsIn).map(([claim]) => String(claim))
    if (providers.length < 2 || claims.length === 0 || claims.includes('iss') || !report.isValid(at)) continue
    report.warning(
      at,
      `do not say at which of ${providers.join(', ')} a person signed in: people of different providers may have the same ${[...new Set(claims)].join(', ')}`,
      'add a header such as X-Issuer: iss and let the application use it, or give the upstream one provider',
    )
  }
}

/** Words that people write for a separator. */
const separators: ReadonlyMap<string, string> = new Map([
  ['comma', ','],
  ['semicolon', ';'],
  ['colon', ':'],
  ['space', ' '],
  ['pipe', '|'],
  ['tab', '\\t'],
])

/** Tokens, which other proxies offer like claims. */
const tokens = ['access_token', 'id_token', 'refresh_token']

/** The maps of headers of an upstream and of its rules, each with its place. */
function headerMaps({ name, headers, rules, providers }: UpstreamConfig) {
  const ofRules = rules.map(({ headers: all = [] }, index) => ({
    at: below(below(settingOf(name, 'rules'), index), 'headers'),
    headers: all.filter((header) => !headers.includes(header)),
  }))
  return [{ at: settingOf(name, 'headers'), headers }, ...ofRules].map((map) => ({ ...map, names: providers }))
}

/** A header sends the token, and `token_exchange` says which one. */
function tokenExchange({ upstreams }: GatewayConfig, report: Report): void {
  for (const upstream of upstreams) {
    const at = settingOf(upstream.name, 'token_exchange')
    const sent = headerMaps(upstream).flatMap(({ at, headers }) =>
      headers.filter(({ source }) => source.kind === 'exchanged').map(({ name }) => below(below(at, name), 'bearer')),
    )
    const isSet = upstream.tokenExchange !== undefined
    if (!isSet && !report.isSet(at))
      for (const place of sent)
        if (report.isSet(place))
          report.error(
            place,
            'needs token_exchange of the upstream, which says which token it gets',
            'add token_exchange: { audience: NAME } to the upstream',
          )
    if (
      isSet &&
      sent.length === 0 &&
      report.isValid(settingOf(upstream.name, 'headers'), settingOf(upstream.name, 'rules'))
    )
      report.errorAtKey(
        at,
        'has no effect: no header sends the token',
        'add headers: { Authorization: { bearer: exchanged_token } }',
      )
  }
}

function headers({ providers, upstreams }: GatewayConfig, report: Report): void {
  for (const { at, headers, names } of upstreams.flatMap(headerMaps)) {
    for (const provider of providers) if (names.includes(provider.name)) checkBoundTokens(provider, headers, at, report)
    for (const [index, header] of headers.entries()) {
      const twin = headers.slice(0, index).find((earlier) => earlier.name.toLowerCase() === header.name.toLowerCase())
      const own = below(at, header.name)
      if (twin) report.errorAtKey(own, `is the same header as ${twin.name}`, 'case makes no difference')
      warnOfValue(header, own, report)
      warnOfClaims(header, own, report)
    }
  }
}

function warnOfValue({ name, source, encode, join }: HeaderConfig, at: string, report: Report): void {
  if (name.toLowerCase() === 'authorization' && source.kind === 'constant' && !source.isSecret)
    report.warning(
      below(at, 'value'),
      'is a credential, which everybody can read who reads this file',
      'write { env: NAME } or { file: PATH }',
    )
  if (encode === 'latin1')
    report.warning(
      below(at, 'encode'),
      'is latin1: this encoding has only the letters of western Europe, so it cannot encode every name',
      'use utf8, or percent when the upstream accepts ASCII only',
    )
  const separator = separators.get(join.toLowerCase())
  if (separator !== undefined && report.isSet(below(at, 'join')))
    report.warning(below(at, 'join'), `puts the word "${join}" between the members`, `write join: "${separator}"`)
}

function warnOfClaims(header: HeaderConfig, at: string, report: Report): void {
  const claims = claimsIn(header).map(([claim]) => String(claim))
  const swapped = claims.find((claim) => /^[A-Z][A-Za-z]*-[A-Za-z-]+$/.test(claim))
  if (swapped !== undefined)
    report.warning(
      at,
      `sends a claim named ${swapped}, which looks like a header`,
      `the name of the header comes first: ${swapped}: ${header.name}`,
    )
  const token = claims.find((claim) => tokens.includes(claim))
  if (token !== undefined)
    report.warning(
      at,
      `names ${token}, which is a token and not a claim: the header will be absent`,
      token === 'refresh_token'
        ? 'the gateway does not pass this token on; name a claim such as sub or email'
        : `name a claim such as sub or email, or write Authorization: { bearer: ${token} } to pass the token on`,
    )
}

function signedIdentity({ upstreams }: GatewayConfig, report: Report): void {
  for (const upstream of upstreams) {
    const { name, signedIdentity } = upstream
    if (signedIdentity === undefined) continue
    const header = signedIdentity.header.toLowerCase()
    const at = below(settingOf(name, 'signed_identity'), 'header')
    const twin = headerMaps(upstream).find(({ headers }) =>
      headers.some((other) => other.name.toLowerCase() === header),
    )
    if (isReservedField(header) && kindOfField(header) !== 'signed_identity')
      report.error(at, 'is a header that only the gateway sets', 'use another name, such as X-Gatehouse-Identity')
    else if (header === 'authorization')
      report.error(
        at,
        'is for credentials, and this JWT is not a credential',
        'use another name, such as X-Gatehouse-Identity',
      )
    else if (twin !== undefined) report.error(at, `is also a header of ${report.pathText(twin.at)}`, 'use another name')
  }
}

/** The list with the longest headers is reported: that of the upstream, or that of a rule. */
function headerBudget({ upstreams }: GatewayConfig, report: Report): void {
  for (const upstream of upstreams) {
    const { name, headers, rules } = upstream
    const lists = [
      { at: settingOf(name, 'headers'), headers },
      ...rules.flatMap(({ headers: own }, index) =>
        own === undefined ? [] : [{ at: below(below(settingOf(name, 'rules'), index), 'headers'), headers: own }],
      ),
    ].map((list) => ({ ...list, sizes: expectedSizes(list.headers, upstream) }))
    const longest = lists.reduce((one, other) => (totalOf(other.sizes) > totalOf(one.sizes) ? other : one))
    const bytes = totalOf(longest.sizes)
    if (bytes > commonHeaderLimitBytes && report.isValid(longest.at))
      report.warning(
        longest.at,
        `may have ${sizeText(bytes)} together (${longestOf(longest.sizes).join(', ')}): many applications reject more than ${sizeText(commonHeaderLimitBytes)} of headers`,
        'lower max_bytes, send fewer groups, or raise the limit of the application',
      )
  }
}
