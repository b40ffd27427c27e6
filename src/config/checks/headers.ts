import { isFieldOfResponses, isReservedField, kindOfField } from '../../core/header-fields.ts'
import { claimsIn } from '../claims-in-use.ts'
import { areValid, type Setting } from '../document/report.ts'
import { commonHeaderLimitBytes, expectedSizes, longestOf, sizeText, totalOf } from '../header-size.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { HeaderConfig } from '../model/header.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { UpstreamConfig } from '../model/upstream.ts'
import type { At, UpstreamCheck } from './check.ts'

/** The checks of the headers that an upstream receives. */
export const headerChecks: readonly UpstreamCheck[] = [
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
function peopleOfSeveralProviders({ providers, headers }: UpstreamConfig, at: At): void {
  const claims = headers.flatMap(claimsIn).map(([claim]) => String(claim))
  if (providers.length < 2 || claims.length === 0 || claims.includes('iss') || !at('headers').isValid) return
  at('headers').warning(
    `do not say at which of ${providers.join(', ')} a person signed in: people of different providers may have the same ${[...new Set(claims)].join(', ')}`,
    'add a header such as X-Issuer: iss and let the application use it, or give the upstream one provider',
  )
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

/** The headers of an upstream, and those that its rules add, each list with its place. */
function headerLists({ headers, rules }: UpstreamConfig, at: At) {
  const ofRules = rules.map(({ headers: all = [] }, index) => ({
    listAt: at('rules', index, 'headers'),
    list: all.filter((header) => !headers.includes(header)),
  }))
  return [{ listAt: at('headers'), list: headers }, ...ofRules]
}

/** A header sends the token, and `token_exchange` says which one. */
function tokenExchange(upstream: UpstreamConfig, at: At): void {
  const exchangeAt = at('token_exchange')
  const sent = headerLists(upstream, at).flatMap(({ listAt, list }) =>
    list.filter(({ source }) => source.kind === 'exchanged').map(({ name }) => listAt.below(name, 'bearer')),
  )
  if (upstream.tokenExchange === undefined && !exchangeAt.isSet)
    for (const place of sent.filter(({ isSet }) => isSet))
      place.error(
        'needs token_exchange of the upstream, which says which token it gets',
        'add token_exchange: { audience: NAME } to the upstream',
      )
  if (upstream.tokenExchange !== undefined && sent.length === 0 && areValid(at('headers'), at('rules')))
    exchangeAt.errorAtKey(
      'has no effect: no header sends the token',
      'add headers: { Authorization: { bearer: exchanged_token } }',
    )
}

function headers(upstream: UpstreamConfig, at: At, { providers }: GatewayConfig): void {
  const own = providers.filter(({ name }) => upstream.providers.includes(name))
  for (const { listAt, list } of headerLists(upstream, at)) {
    for (const provider of own) checkBoundTokens(provider, list, listAt)
    for (const [index, header] of list.entries()) {
      const twin = list.slice(0, index).find((earlier) => earlier.name.toLowerCase() === header.name.toLowerCase())
      const headerAt = listAt.below(header.name)
      if (twin) headerAt.errorAtKey(`is the same header as ${twin.name}`, 'case makes no difference')
      warnOfValue(header, headerAt)
      if (isFieldOfResponses(header.name))
        headerAt.warning(
          'is a header of responses, and applications do not read it: headers are for the application',
          `to send it to browsers, write response_headers: { set: { ${header.name}: … } }`,
        )
      warnOfClaims(header, headerAt)
    }
  }
}

function warnOfValue({ name, source, encode, join }: HeaderConfig, at: Setting): void {
  if (name.toLowerCase() === 'authorization' && source.kind === 'constant' && !source.isSecret)
    at.below('value').warning(
      'is a credential, which everybody can read who reads this file',
      'write { env: NAME } or { file: PATH }',
    )
  if (encode === 'latin1')
    at.below('encode').warning(
      'is latin1: this encoding has only the letters of western Europe, so it cannot encode every name',
      'use utf8, or percent when the upstream accepts ASCII only',
    )
  const separator = separators.get(join.toLowerCase())
  if (separator !== undefined && at.below('join').isSet)
    at.below('join').warning(`puts the word "${join}" between the members`, `write join: "${separator}"`)
}

function warnOfClaims(header: HeaderConfig, at: Setting): void {
  const claims = claimsIn(header).map(([claim]) => String(claim))
  const swapped = claims.find((claim) => /^[A-Z][A-Za-z]*-[A-Za-z-]+$/.test(claim))
  if (swapped !== undefined)
    at.warning(
      `sends a claim named ${swapped}, which looks like a header`,
      `the name of the header comes first: ${swapped}: ${header.name}`,
    )
  const token = claims.find((claim) => tokens.includes(claim))
  if (token !== undefined)
    at.warning(
      `names ${token}, which is a token and not a claim: the header will be absent`,
      token === 'refresh_token'
        ? 'the gateway does not pass this token on; name a claim such as sub or email'
        : `name a claim such as sub or email, or write Authorization: { bearer: ${token} } to pass the token on`,
    )
}

/**
 * Rejects headers that pass on a bound access token: an upstream cannot use it, because the gateway
 * alone has the key or the certificate (RFC 9449 §7, RFC 8705 §3). `headers` are those of an
 * upstream or a rule.
 */
function checkBoundTokens(
  { setting, dpop, profile }: Pick<ProviderConfig, 'setting' | 'dpop' | 'profile'>,
  headers: UpstreamConfig['headers'],
  at: Setting,
): void {
  if (!dpop && profile === undefined) return
  const [binding, to] = dpop ? (['dpop', 'a key'] as const) : (['profile', 'the certificate'] as const)
  for (const { name, source } of headers) {
    if (source.kind === 'exchanged')
      at.below(name, 'bearer').error(
        `needs an access token that can be exchanged: ${setting}.${binding} binds access tokens to ${to} of the gateway`,
        `use signed_identity, or remove ${setting}.${binding}`,
      )
    if (source.kind === 'bearer' && source.bearer === 'access_token')
      at.below(name, 'bearer').error(
        `is a token that the upstream cannot use: ${setting}.${binding} binds it to ${to} of the gateway`,
        `write bearer: id_token or use signed_identity, or remove ${setting}.${binding}`,
      )
  }
}

function signedIdentity(upstream: UpstreamConfig, at: At): void {
  const { signedIdentity } = upstream
  if (signedIdentity === undefined) return
  const header = signedIdentity.header.toLowerCase()
  const headerAt = at('signed_identity', 'header')
  const twin = headerLists(upstream, at).find(({ list }) => list.some(({ name }) => name.toLowerCase() === header))
  const otherName = 'use another name, such as X-Gatehouse-Identity'
  if (isReservedField(header) && kindOfField(header) !== 'signed_identity')
    headerAt.error('is a header that only the gateway sets', otherName)
  else if (header === 'authorization') headerAt.error('is for credentials, and this JWT is not a credential', otherName)
  else if (twin !== undefined) headerAt.error(`is also a header of ${twin.listAt.path}`, 'use another name')
}

/** The list with the longest headers is reported: that of the upstream, or that of a rule. */
function headerBudget(upstream: UpstreamConfig, at: At): void {
  const lists = [
    { listAt: at('headers'), list: upstream.headers },
    ...upstream.rules.flatMap(({ headers: list }, index) =>
      list === undefined ? [] : [{ listAt: at('rules', index, 'headers'), list }],
    ),
  ].map(({ listAt, list }) => ({ listAt, sizes: expectedSizes(list, upstream) }))
  const { listAt, sizes } = lists.reduce((one, other) => (totalOf(other.sizes) > totalOf(one.sizes) ? other : one))
  const bytes = totalOf(sizes)
  if (bytes > commonHeaderLimitBytes && listAt.isValid)
    listAt.warning(
      `may have ${sizeText(bytes)} together (${longestOf(sizes).join(', ')}): many applications reject more than ${sizeText(commonHeaderLimitBytes)} of headers`,
      'lower max_bytes, send fewer groups, or raise the limit of the application',
    )
}
