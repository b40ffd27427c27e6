import { placeholder } from '../../../src/entries/import.ts'
import { type Claims, type Outcome, peopleWith } from '../common/outcomes.ts'
import { inMemory, sessionTimes, usableDomain } from '../common/session-settings.ts'
import { type Translated, translatedFile } from '../common/translated-file.ts'
import type { Translation } from '../common/translation.ts'
import {
  anyOf,
  literal,
  type Requirement,
  type Rule,
  untilDecided,
  type WrittenUpstream,
} from '../common/written-config.ts'

/** The settings of a program that decides for a proxy (`ForwardAuth`, `auth_request`). */
export interface ForwardAuthSettings {
  /** The name of the program. */
  readonly program: string
  readonly externalUrl: string | undefined
  /** The path of its redirect URI. */
  readonly callback: string
  readonly listenPort: string
  readonly listenTls?: object | undefined
  readonly issuer: string | undefined
  readonly clientId: string | undefined
  readonly scopes?: readonly string[] | undefined
  readonly authorizationParams?: Readonly<Record<string, string>> | undefined
  readonly absoluteMs: number | undefined
  readonly cookieDomain: string | undefined
  readonly sameSite?: string | undefined
  readonly headers: object
  /** The rules for all hosts, and those for one. */
  readonly rules: (host: string | undefined) => readonly Rule[]
  readonly hosts: readonly string[]
  readonly outcomes: (host: string) => readonly Outcome[]
}

/** A configuration for a proxy that asks about each request. */
export function forwardAuthFile(settings: ForwardAuthSettings, from: Translation): Translated {
  const { program, externalUrl, callback, issuer, clientId, cookieDomain, hosts, headers } = settings
  const isUrl = externalUrl !== undefined && URL.canParse(externalUrl)
  const external_url = isUrl ? externalUrl : `https://${placeholder}.example.com`
  if (!isUrl) from.decide('external_url', 'write the URL at which people sign in as external_url (--url sets it)')
  if (issuer === undefined)
    from.decide(
      'issuer',
      'write the issuer of the provider as provider.issuer; a provider without ID Tokens needs more: docs/providers/oauth2.md',
    )
  if (clientId === undefined) from.decide('client_id', 'write the client ID of the gateway as provider.client_id')
  from.decide(
    'trusted_proxies',
    'write the address from which the proxy asks; the gateway accepts check requests from it only',
  )
  from.changed(
    'redirect_uri',
    `the redirect URI is ${external_url}/.gatehouse/callback${callback === '' ? '' : ` in place of ${callback}`}: register it at the provider; the proxy asks /.gatehouse/forward-auth, and sends all requests below /.gatehouse/ to the gateway (docs/forward-auth.md)`,
  )
  from.changed('client_secret', 'the file contains no secret; set the environment variable CLIENT_SECRET')
  const { hostname, protocol } = new URL(external_url)
  const domain = usableDomain([cookieDomain ?? ''], external_url)
  if (cookieDomain !== undefined)
    from[domain !== undefined ? 'changed' : 'lost'](
      'cookie_domain',
      domain !== undefined
        ? `the hosts of ${domain} share one session; a wildcard names hosts one label below it: add an upstream for others`
        : `${cookieDomain} does not contain the host of external_url, or that is not https; each host needs an upstream with its external_url`,
    )
  const own = hosts.filter((host) => host !== hostname)
  // A rule may add a denial, so this comes before them.
  const rules = new Map([undefined, ...own].map((host) => [host, settings.rules(host)]))
  const upstream = (host: string | undefined): WrittenUpstream => ({
    forward_auth: true,
    external_url: `${protocol}//${host ?? new URL(external_url).host}`,
    headers,
    rules: rules.get(host),
  })
  const config = {
    version: 1,
    listen:
      settings.listenTls === undefined
        ? `0.0.0.0:${settings.listenPort}`
        : { address: `0.0.0.0:${settings.listenPort}`, tls: settings.listenTls },
    external_url,
    trusted_proxies: ['127.0.0.1'],
    provider: {
      issuer: issuer ?? `https://${placeholder}.example.com`,
      client_id: clientId ?? placeholder,
      client_secret: { env: 'CLIENT_SECRET' },
      scopes: settings.scopes && ['openid', ...settings.scopes.filter((scope) => scope !== 'openid')],
      authorization_params: settings.authorizationParams,
    },
    session: sessionOf(settings, domain, from),
    upstreams: untilDecided(
      {
        app: upstream(undefined),
        ...Object.fromEntries(own.map((host) => [host.replaceAll(/[^\w-]/g, '-'), upstream(host)])),
        ...(domain !== undefined && { others: { ...upstream(undefined), external_url: `https://*.${domain}` } }),
      },
      from.denials,
    ),
  }
  const outcomes = [hostname, ...own].flatMap(settings.outcomes)
  return translatedFile(config, outcomes, program, from)
}

function sessionOf(settings: ForwardAuthSettings, domain: string | undefined, from: Translation): object {
  from.changed('session.store', inMemory)
  const isStrict = settings.sameSite?.toLowerCase() === 'strict'
  return {
    store: 'memory',
    ...sessionTimes(settings.absoluteMs, 'lifetime', settings.program, from),
    cookie: domain === undefined && !isStrict ? undefined : { domain, ...(isStrict && { same_site: 'strict' }) },
  }
}

/** People with an address in one of these domains. @param below also domains below them */
export function domainRequirement(domains: readonly string[], below: boolean, from: Translation): Requirement {
  from.changed('domain', 'the provider must say that it has verified the address (email_verified: true)')
  const exact: Requirement = { email_domains: domains }
  if (!below) return exact
  const verified: Requirement = { claim: 'email_verified', any_of: ['true'] }
  const patterns = domains.map((domain): Requirement => ({
    claim: 'email',
    matches: `[^@]+@[^@]+\\.${literal(domain)}`,
  }))
  return anyOf([exact, { all: [verified, anyOf(patterns)] }])
}

/** People for tests: with these addresses, with none, and with another one. */
export function peopleAt(addresses: readonly string[]): readonly Claims[] {
  const verified = { email_verified: true }
  const values = addresses.map((address) => ['email', address] as const)
  return [...peopleWith(values, verified), { sub: 'zoe', email: 'zoe@elsewhere.example', ...verified }]
}
