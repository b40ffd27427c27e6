import { parseClaimPath, parseClaimTemplate, parseSelection } from '../../core/claims.ts'
import { sha256 } from '../../core/random.ts'
import { parseHttpUrl } from '../addresses.ts'
import { secure } from '../document/address-formats.ts'
import type { Setting } from '../document/report.ts'
import type { ApiClaimConfig, ClaimPages, ClaimsProviderConfig, ClaimSourceConfig } from '../model/provider.ts'
import type { ClaimSourceSettings, ProviderSettings } from '../settings.ts'
import { readEach } from './build-context.ts'
import { type ShortNames, withLongName } from './claim-names.ts'

/** Claims that say who is signed in and how, which only the ID Token may say. */
const protectedClaims: ReadonlySet<string> = new Set([
  ...['iss', 'sub', 'sid', 'aud', 'azp', 'exp', 'iat', 'nbf', 'jti', 'nonce', 'at_hash', 'auth_time', 'acr', 'amr'],
  ...['_claim_names', '_claim_sources', 'hasgroups'],
])

/** The claims of `claims_from`, each with its sources. */
export function readClaimsFrom(
  { claimsFrom }: Pick<ProviderSettings, 'claimsFrom'>,
  shortNames: ShortNames,
  at: Setting,
): ApiClaimConfig[] {
  const entries = readEach(claimsFrom, at, (settings, entryAt) => ({
    settings,
    source: readSource(settings, shortNames, entryAt),
  }))
  const names = [...new Set(entries.map(({ settings }) => settings.as ?? ''))]
  return names.map((name) => {
    const own = entries.filter(({ settings }) => settings.as === name)
    const [isMerged = false, ...others] = own.map(({ settings }) => settings.merge)
    if (others.some((other) => other !== isMerged))
      at.error(
        `has several entries for ${name}, of which some have merge: true`,
        'write it in each of them, or in none',
      )
    const intervals = own.flatMap(({ settings }) => settings.everyMs ?? [])
    const sources = own.flatMap(({ source }) => source ?? [])
    const id = sha256(JSON.stringify([name, isMerged, sources])).slice(0, 12)
    return {
      ...{ id, name: String(withLongName([name], shortNames)[0]), isMerged, sources },
      everyMs: intervals.length === 0 ? undefined : Math.min(...intervals),
    }
  })
}

/** The issuers of `claim_sources`. */
export function readClaimSources(
  { claimSources }: Pick<ProviderSettings, 'claimSources'>,
  at: Setting,
): ClaimsProviderConfig[] {
  return readEach(claimSources, at, ({ issuer, jwks_uri, endpoints }) =>
    issuer === undefined || jwks_uri === undefined ? undefined : { issuer, jwks_uri, endpoints },
  )
}

function readSource(settings: ClaimSourceSettings, shortNames: ShortNames, at: Setting): ClaimSourceConfig | undefined {
  const { url: urlText, as, select: selectText, token, absentIsEmpty } = settings
  if (as !== undefined && protectedClaims.has(as))
    at.below('as').error('is a claim that only the ID Token may have', 'choose another name')
  const found = at.below('url').parse(urlText, (text) => parseAddress(text, shortNames))
  const select = at.below('select').parse(selectText, parseSelection)
  const pages = settings.pages && readPages(settings.pages, at.below('pages'))
  if (urlText === undefined || found === undefined || selectText === undefined || select === undefined) return undefined
  return { ...found, urlText, token, scopes: settings.scopes, select, selectText, absentIsEmpty, pages }
}

/** What replaces the value of a claim while the address is checked. */
const standIn = 'claim'

function parseAddress(text: string, shortNames: ShortNames): Pick<ClaimSourceConfig, 'url' | 'origin'> {
  const template = parseClaimTemplate(text)
  const whole = template.map((part) => (typeof part === 'string' ? part : standIn)).join('')
  const url = parseHttpUrl(whole.replace(/\?[^#]*/, ''), 'https://graph.microsoft.com/v1.0/me/memberOf')
  const [first] = template
  // A claim must not decide where the access token is sent.
  if (typeof first !== 'string' || !/^https?:\/\/[^/]+\//i.test(first))
    throw new SyntaxError('must name the host: a claim may stand in its path and its query only')
  secure(url)
  const long = template.map((part) => (typeof part === 'string' ? part : withLongName(part, shortNames)))
  return { url: long, origin: url.origin }
}

function readPages(
  { next, parameter }: NonNullable<ClaimSourceSettings['pages']>,
  at: Setting,
): ClaimPages | undefined {
  if (next === 'link') return { kind: 'link' }
  const path = at.below('next').parse(next, parseClaimPath)
  if (path === undefined) return undefined
  if (path[0] === '@odata') at.below('next').error('would be a path', `write pages: '"@odata.nextLink"'`)
  return parameter === undefined ? { kind: 'address', path } : { kind: 'parameter', path, parameter }
}
