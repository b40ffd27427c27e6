import { isRemovableField, kindOfField } from '../../core/header-fields.ts'
import { parseScryptHash } from '../../core/scrypt-hash.ts'
import { isLoopback } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import { readNamedFile } from '../document/secrets.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { RuleConfig } from '../model/rule.ts'
import type { AccessKeysConfig, AccessTokensConfig, ServiceAccount, ServiceAccountsConfig } from '../model/upstream.ts'
import type { RuleSettings, UpstreamSettings } from '../settings.ts'
import { readEach } from './build-context.ts'
import { type ShortNames, withLongNames } from './claim-names.ts'
import { readRequirements } from './requirements.ts'

/** Which access tokens an upstream accepts; `undefined` when it accepts none. */
export function readAccessTokens(
  settings: UpstreamSettings['accessTokens'],
  at: Setting,
  providers: readonly Pick<ProviderConfig, 'client_id'>[],
): AccessTokensConfig | undefined {
  if (settings === undefined) return undefined
  const { check, audience = [] } = settings
  const types = settings.types.map((type) => type.toLowerCase())
  // A token that is no JWT does not name its provider, and must not be shown to another one.
  if (check === 'introspection' && providers.length > 1)
    at.below('check').error(
      'needs an upstream with one provider, because an opaque token does not name the provider that issued it',
      'name the provider of the upstream in its providers, or use check: jwt',
    )
  const ofClient = providers.find(({ client_id }) => audience.includes(client_id))
  if (ofClient !== undefined && types.some((type) => type !== 'at+jwt'))
    at.below('audience').error(
      `contains the client_id ${ofClient.client_id}, which is the audience of ID Tokens: they would be accepted as access tokens`,
      'register the API at the provider with an audience of its own, or accept types: [at+jwt] only',
    )
  return { ...settings, audience: audience.flatMap(spellingsOf), types }
}

/**
 * A URL without a path is the same as one with an empty path (RFC 3986 §6.2.3), and clients that
 * follow RFC 9728 write the slash.
 */
function spellingsOf(audience: string): readonly string[] {
  return /^https?:\/\/[^/?#]+$/.test(audience) ? [audience, `${audience}/`] : [audience]
}

/** The keys that people make for an upstream; `undefined` when they make none. */
export function readKeys(
  settings: UpstreamSettings['keys'],
  at: Setting,
  { claims }: { readonly claims: ShortNames },
): AccessKeysConfig | undefined {
  if (settings === undefined) return undefined
  const name = settings.header?.toLowerCase() ?? ''
  if (name === 'authorization' || kindOfField(name) !== undefined || !isRemovableField(name))
    at.below('header').error('is a header with a meaning of its own', 'write another one, such as X-Api-Key')
  return { ...settings, require: readRequirements(settings.require, at.below('require'), claims) }
}

const maxFileBytes = 1024 * 1024
const accountName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** The gateway sets these claims. */
const ownClaims = ['iss', 'sub', 'sid', 'client_id']

export function isAccountName(name: string): boolean {
  return accountName.test(name)
}

/** The service accounts of an upstream; `undefined` when it accepts none. */
export function readServiceAccounts(
  settings: UpstreamSettings['serviceAccounts'],
  at: Setting,
  { claims: names, externalUrl }: { readonly claims: ShortNames; readonly externalUrl: URL },
): ServiceAccountsConfig | undefined {
  if (settings === undefined) return undefined
  const accounts = settings.file === undefined ? [] : readFile(settings.file, at.below('file'))
  if (externalUrl.protocol === 'http:' && !isLoopback(externalUrl.hostname))
    at.errorAtKey(
      'needs an https external_url: everybody on the network could read the secrets',
      'serve the gateway with https, as the session cookie needs it too',
    )
  const claimsAt = at.below('claims')
  const known = new Set(accounts.map(({ name }) => name))
  const claims = Object.entries(settings.claims).map(([name, own]) => {
    const ownAt = claimsAt.below(name)
    const long = withLongNames(own, names)
    for (const claim of ownClaims.filter((each) => each in long))
      ownAt.below(claim).error('is a claim that the gateway sets itself', 'remove it')
    // An error would keep the removal of an account from taking effect.
    if (!known.has(name) && at.below('file').isValid)
      ownAt.warning(`has no effect: ${settings.file} has no account ${name}`)
    return [name, long] as const
  })
  return { accounts, claims: Object.fromEntries(claims) }
}

/** One account a line: `NAME:$scrypt$…`. A name with two lines has two secrets. */
function readFile(path: string, at: Setting): readonly ServiceAccount[] {
  const content = readNamedFile(path, at, maxFileBytes)
  if (content === undefined) return []
  const { file, bytes } = content
  at.report.secretFiles.push({ setting: at.path, file })
  const lines = bytes.toString('utf8').split(/\r?\n/)
  const accounts = lines.flatMap((line, index) => {
    if (line.trim() === '' || line.startsWith('#')) return []
    try {
      return [readLine(line)]
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      const hint = 'make a line with: gatehouse service-account NAME'
      at.errorAtPlace({ file, line: index + 1, column: 1 }, `the line ${error.message}`, hint)
      return []
    }
  })
  for (const { name } of accounts)
    if (accounts.filter((each) => each.name === name).length > 2) {
      at.error(`${file} has more than two lines for ${name}`, 'keep the line of the current secret')
      break
    }
  return accounts
}

/** @throws {SyntaxError} which never quotes the line: it may be a secret by mistake */
function readLine(line: string): ServiceAccount {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0))
  if (!isAccountName(name))
    throw new SyntaxError(
      'must be NAME:HASH, with a name of at most 64 letters, digits, ".", "_" and "-" that begins with a letter or a digit',
    )
  return { name, hash: parseScryptHash(line.slice(colon + 1).trimEnd()) }
}

/** Whether a rule accepts service accounts. `accounts`: those of its upstream. */
export function readRuleAccounts(
  settings: RuleSettings['serviceAccounts'],
  at: Setting,
  accounts: ServiceAccountsConfig | undefined,
): Pick<RuleConfig, 'serviceAccounts'> {
  if (settings === false) return {}
  if (settings === true) return { serviceAccounts: 'all' }
  const known = new Set(accounts?.accounts.map(({ name }) => name))
  readEach(settings, at, (name, nameAt) => {
    if (known.size > 0 && !known.has(name))
      nameAt.warning('has no effect: the file of service_accounts has no account of this name')
  })
  return { serviceAccounts: settings }
}
