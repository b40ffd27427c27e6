import { parseHttpUrl, placeholder } from '../../../src/entries/import.ts'
import { Notes } from '../common/notes.ts'
import { type Outcome, outcomesFor, peopleWith } from '../common/outcomes.ts'
import { canMatchBelow } from '../common/path-regions.ts'
import { type Translated, translatedFile } from '../common/translated-file.ts'
import {
  claimPath,
  type GivenText,
  plainListen,
  type Requirement,
  type Rule,
  untilDecided,
  type WrittenUpstream,
} from '../common/written-config.ts'
import { responseDirectives, restrictsNothing } from './apache-directives.ts'
import { type Directive, readApache, shownSection } from './apache-file.ts'
import { redirectRules } from './apache-redirects.ts'
import { type Authz, networkOf, type RemoteUser, requirementOf } from './apache-requirements.ts'
import { admits, conditionsOf, methodsOf, optionalNote, rulesOf, sectionsOf } from './apache-sections.ts'
import { argsOf, issuerOf, type Site, valueOf } from './apache-site.ts'
import { translateHeaders } from './mod-auth-openidc-headers.ts'
import { translateProvider, translateProxy, translateSession } from './mod-auth-openidc-settings.ts'
import { upstreamsOf } from './mod-auth-openidc-upstreams.ts'
import { withoutTranslation } from './mod-auth-openidc-without.ts'

/**
 * Translates the virtual hosts of Apache that use mod_auth_openidc, and notes the differences. What
 * is unknown and may restrict access makes the configuration deny all people until an operator
 * decides.
 * @param args arguments of httpd: `-D NAME`
 */
export function translateApache(
  texts: readonly GivenText[],
  args: readonly string[],
  externalUrl: string | undefined,
): Translated {
  const from = new Notes()
  const definitions = args.flatMap((arg, index) =>
    args[index - 1] === '-D' ? [arg] : (/^-D(.+)/.exec(arg)?.[1] ?? []),
  )
  const directives = readApache(texts, definitions, from)
  const sites = sitesOf(directives, externalUrl, from)
  const [first] = sites
  if (first === undefined)
    throw new SyntaxError('there is no virtual host with OIDC directives or AuthType openid-connect: name its file too')
  for (const site of sites) noteOtherClient(site, first, from)
  const taken = new Set<string>()
  const parts = sites.map((site) => translateSite(site, sites, taken, from))
  const written = Object.assign({}, ...parts.map(({ upstreams }) => upstreams)) as Record<string, WrittenUpstream>
  const config = {
    version: 1,
    listen: listenOf(sites, written, from),
    external_url: first.externalUrl,
    trusted_proxies: trustedProxies(first, from),
    egress_proxy: translateProxy(first, from),
    provider: translateProvider(first, from),
    session: translateSession(first, from),
    upstreams: written,
  }
  for (const site of sites)
    for (const directive of site.directives) {
      noteDirective(directive, site, from)
      noteInSection(directive, site, from)
    }
  return translatedFile(
    { ...config, upstreams: untilDecided(config.upstreams, from.denials) },
    parts.flatMap(({ outcomes }) => outcomes),
    'Apache',
    from,
  )
}

/** People of another provider must not have access to a virtual host. */
function noteOtherClient(site: Site, first: Site, from: Notes): void {
  const differs = (name: string) => valueOf(site, name) !== valueOf(first, name)
  const other = ['OIDCProviderMetadataURL', 'OIDCProviderIssuer', 'OIDCClientID', 'OIDCMetadataDir'].filter(differs)
  if (other.length > 0)
    from.deny(
      other.join(', '),
      `${site.externalUrl} has another value than ${first.externalUrl}; import each virtual host to a file of its own, or write providers (docs/several-providers.md)`,
    )
}

function usesOpenidConnect({ name, args, children = [] }: Directive): boolean {
  if (name === 'authtype') return /^(?:openid-connect|auth-openidc|oauth20)$/i.test(args[0] ?? '')
  return name.startsWith('oidc') || children.some(usesOpenidConnect)
}

function sitesOf(directives: readonly Directive[], externalUrl: string | undefined, from: Notes): readonly Site[] {
  const hosts = directives.filter(({ name }) => name === 'virtualhost')
  const server = directives.filter(({ name }) => name !== 'virtualhost')
  const isShared = server.some(usesOpenidConnect)
  const used = hosts.filter(
    ({ args, children = [] }) =>
      children.some(usesOpenidConnect) || (isShared && !args.every((address) => address.endsWith(':80'))),
  )
  for (const host of hosts.filter((each) => !used.includes(each)))
    from.lost(
      `<VirtualHost ${host.args.join(' ')}>`,
      `${valueOf({ directives: host.children ?? [] }, 'ServerName') ?? 'it'} has no sign-in, and is not translated; let Apache, or another proxy, serve it still`,
    )
  if (hosts.length === 0) return isShared ? [siteOf(server, [], externalUrl, from)] : []
  return used.map((host, index) =>
    siteOf([...server, ...(host.children ?? [])], host.args, index === 0 ? externalUrl : undefined, from),
  )
}

function siteOf(
  directives: readonly Directive[],
  addresses: readonly string[],
  given: string | undefined,
  from: Notes,
): Site {
  const redirect = originOf(valueOf({ directives }, 'OIDCRedirectURI') ?? '')
  const name = valueOf({ directives }, 'ServerName')
    ?.replace(/^https?:\/\//, '')
    .replace(/:\d+$/, '')
  const isTls =
    valueOf({ directives }, 'SSLEngine')?.toLowerCase() === 'on' || addresses.some((each) => each.endsWith(':443'))
  const byName = name === undefined ? undefined : `${isTls ? 'https' : 'http'}://${name}`
  const externalUrl = [given, redirect, byName].find((each) => each !== undefined && URL.canParse(each))
  if (externalUrl === undefined)
    from.decide('ServerName', 'write the URL at which browsers reach the gateway as external_url (--url sets it)')
  const aliases = argsOf({ directives }, 'ServerAlias') ?? []
  if (aliases.length > 0)
    from.lost(
      'ServerAlias',
      `${aliases.join(', ')}: people sign in at external_url only; redirect these hosts to it, or write hosts of the upstream`,
    )
  return {
    directives,
    externalUrl: externalUrl ?? `https://${placeholder}.example.com`,
    user: remoteUserOf(directives, from),
  }
}

function originOf(text: string): string | undefined {
  try {
    return parseHttpUrl(text, '').origin
  } catch {
    return undefined
  }
}

/** By default, `REMOTE_USER` is the claim sub, with the issuer after it. */
function remoteUserOf(directives: readonly Directive[], from: Notes): RemoteUser {
  const [claim = 'sub@', expression] = argsOf({ directives }, 'OIDCRemoteUserClaim') ?? []
  const issuer = issuerOf({ directives })
  const suffix = claim.endsWith('@') ? `@${issuer ?? ''}` : ''
  const name = claim.replace(/@$/, '')
  if (expression !== undefined)
    from.decide(
      'OIDCRemoteUserClaim',
      'its regular expression is not translated; write before, after or map of the header (docs/headers.md)',
    )
  return {
    claim: name,
    suffix: expression === undefined ? suffix : undefined,
    condition: conditionOf(name, expression, suffix),
  }
}

/** A person without the claim, or with another value than the expression, cannot sign in. */
function conditionOf(claim: string, expression: string | undefined, suffix: string): Authz {
  if (expression === undefined)
    return claim === 'sub' ? { kind: 'valid-user' } : { kind: 'pattern', claim: claimPath(claim), pattern: '^.+$' }
  // The expression is compared with the value and its suffix.
  return suffix === ''
    ? { kind: 'pattern', claim: claimPath(claim), pattern: expression }
    : { kind: 'unknown', text: `OIDCRemoteUserClaim ${claim}@ ${expression}` }
}

/** The proxies that `mod_remoteip` trusts; `Require ip` compares what they say. */
function trustedProxies(site: Site, from: Notes): readonly string[] | undefined {
  const field = valueOf(site, 'RemoteIPHeader')
  const given = site.directives
    .filter(({ name }) => /^remoteip(?:trusted|internal)proxy$/.test(name))
    .flatMap(({ args }) => args)
  if (field === undefined && given.length === 0) return undefined
  const networks = given.map(networkOf)
  if (field?.toLowerCase() === 'x-forwarded-for' && given.length > 0 && networks.every((each) => each !== undefined))
    return networks
  from.deny(
    'RemoteIPHeader',
    'which proxies name the addresses of clients is not translated; write their addresses in trusted_proxies, and let them send X-Forwarded-For',
  )
  return undefined
}

function listenOf(sites: readonly Site[], upstreams: Record<string, WrittenUpstream>, from: Notes): unknown {
  const pairs = sites.flatMap((site) => {
    const [cert_file, key_file] = [valueOf(site, 'SSLCertificateFile'), valueOf(site, 'SSLCertificateKeyFile')]
    return cert_file === undefined ? [] : [{ cert_file, key_file: key_file ?? cert_file }]
  })
  const [pair, ...more] = [...new Map(pairs.map((each) => [each.cert_file, each])).values()]
  if (pair === undefined) {
    const listen = plainListen(upstreams)
    from.changed('Listen', `the gateway listens on ${listen} in plain http, behind what terminates TLS`)
    return listen
  }
  return { address: '0.0.0.0:443', tls: { ...pair, ...(more.length > 0 && { certificates: more }) } }
}

function translateSite(site: Site, sites: readonly Site[], taken: Set<string>, from: Notes) {
  const sections = sectionsOf(site, from)
  const { upstreams, closed } = upstreamsOf(site, taken, from)
  const origins = upstreams.flatMap(({ settings }) => ('url' in settings ? [String(settings.url)] : []))
  const isHttps = site.externalUrl.startsWith('https:')
  const redirects = redirectRules(site.directives, { isHttps, origins }, from)
  const rules = [...redirects, ...closed, ...rulesOf(sections, from)]
  const open = [...new Set(['/', ...upstreams.map(({ path }) => path)])].filter(
    (path) => admits(sections, { method: 'GET', path }, site.user) === true,
  )
  if (!sections.some(({ patterns = [], entries }) => patterns.includes('/*') && entries.length > 0)) {
    const paths = open.length > 0 ? open.join(', ') : 'paths that no <Location> names'
    from.decide(
      `${site.externalUrl}/`,
      `as in Apache, all paths without a Require are public, such as ${paths}; if they need a sign-in, remove the last rule`,
    )
  }
  const whole: readonly Rule[] = rules.some(({ path }) => path === '/*')
    ? rules
    : [...rules, { path: '/*', access: 'public' }]
  const { headers, removed } = translateHeaders(site, from)
  // A required header knows no regular expression.
  const isRequired =
    site.user.suffix !== undefined && Object.values(headers).some((header: object) => 'required' in header)
  const needed = requirementsOfUser(site.user, from)
  const all = whole.map((rule) => forUsers(rule, needed, isRequired, from))
  const entries = upstreams.map(({ name, path, settings }) => {
    const own = all.filter((rule) => canMatchBelow(rule, path))
    return [
      name,
      {
        ...settings,
        ...(path !== '/' && { path }),
        ...(sites.length > 1 && { external_url: site.externalUrl }),
        headers,
        request_headers: { remove: removed },
        rules: own,
      },
    ] as const
  })
  return { upstreams: Object.fromEntries(entries), outcomes: outcomes(site, sites.length > 1, sections, upstreams) }
}

/** A condition of access is a requirement, because a `RequestHeader` can replace the header. */
function requirementsOfUser({ condition }: RemoteUser, from: Notes): readonly Requirement[] {
  try {
    const requirement = requirementOf(condition)
    return typeof requirement === 'boolean' ? [] : [requirement]
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : 'rules cannot express its regular expression'
    from.deny('OIDCRemoteUserClaim', `${why}, which all people must match; write it as a requirement of the rules`)
    return []
  }
}

/** @param isRequired whether a required header denies people without the claim on optional paths */
function forUsers(rule: Rule, needed: readonly Requirement[], isRequired: boolean, from: Notes): Rule {
  const { access, require = [], ...others } = rule
  const isOptional = access === 'optional' && isRequired
  if (needed.length === 0 || access === 'public' || rule.respond !== undefined || isOptional) return rule
  if (access === 'optional') from.lost(`OIDCUnAuthAction for ${rule.path}`, optionalNote)
  return { ...others, require: [...require, ...needed] }
}

function outcomes(
  { externalUrl, user }: Site,
  hasSeveral: boolean,
  sections: ReturnType<typeof sectionsOf>,
  upstreams: readonly { readonly path: string }[],
): Outcome[] {
  const conditions = conditionsOf(sections)
  const values = conditions.flatMap((each): [string, string][] => {
    if (each.kind === 'claim') return each.values.map((value) => [each.claim, value])
    const text = each.kind === 'pattern' ? each.pattern.replaceAll(/[\^$]|\[[^\]]*\][+*]?/g, '') : ''
    return each.kind === 'pattern' && /^[\w@.-]+$/.test(text)
      ? [
          [each.claim, `${text}x`],
          [each.claim, text],
        ]
      : []
  })
  const networks = conditions.flatMap((each) => (each.kind === 'ip' ? each.networks : []))
  const paths = sections.flatMap(({ patterns = [] }) =>
    patterns.flatMap((pattern) => {
      const path = pattern
        .replaceAll('/*/', '/one/')
        .replace(/\/\*(\.[\w-]+)?$/, (_, ending: string = '') => `/x${ending}`)
      return [path, ...(pattern.endsWith('/*') && pattern !== '/*' ? [path.replace(/\/x$/, '')] : [])]
    }),
  )
  const base = user.claim === 'sub' ? {} : { [user.claim]: 'ada@example.com' }
  return outcomesFor(
    {
      paths: ['/', ...upstreams.map(({ path }) => path), ...paths, '/other'],
      methods: [...methodsOf(sections), 'POST'],
      people: [
        ...peopleWith(values, base),
        ...peopleWith(values.filter(([claim]) => claim !== claimPath(user.claim)))
          .slice(-2, -1)
          .map((person) => ({ ...person, sub: 'noname' })),
      ],
      networks,
      ...(hasSeveral && { host: new URL(externalUrl).hostname }),
    },
    (request) => admits(sections, request, user),
  )
}

/** The directives of a site that other parts read. */
const readElsewhere =
  /^(?:directory|directorymatch|files|filesmatch|location|locationmatch|proxy|proxymatch|if|elseif|else|proxypass|proxypassmatch|balancermember|requestheader|redirect|redirectmatch|redirectpermanent|redirecttemp|rewritecond|rewriterule|remoteipheader|remoteiptrustedproxy|remoteipinternalproxy|remoteipproxiesheader)$/

function noteDirective(directive: Directive, { externalUrl }: Site, from: Notes): void {
  const { name, written } = directive
  const lost = responseDirectives.get(name)
  if (name.startsWith('oidc')) {
    if (!translated.has(name)) from.untranslated(written, withoutTranslation.get(name))
  } else if (lost !== undefined) from.lost(written, lost)
  else if (name === 'sslrequiressl' && externalUrl.startsWith('https:'))
    from.unneeded(written, 'people reach the gateway with https only, as external_url says')
  else if (name === 'sslverifyclient' && !restrictsNothing(directive))
    from.deny(
      written,
      'requests need a certificate of a client; write listen.tls.client_ca_file, and client_certificates in the rules (docs/apis.md)',
    )
  else if (!readElsewhere.test(name) && !restrictsNothing(directive))
    from.deny(
      written,
      'import does not translate this directive, and it may restrict access; write what it does as rules',
    )
}

/** Settings of one section: the file has those of the whole site only. */
function noteInSection(section: Directive, site: Site, from: Notes): void {
  for (const child of (section.children ?? []).filter(({ name }) => name !== 'oidcunauthaction')) {
    const isHeader = child.name === 'requestheader' || child.name === 'header'
    if (isHeader || translated.has(child.name))
      from.lost(
        `${child.written} in ${shownSection(section)}`,
        'it holds for one section, and is not translated; write headers of its rule, or of the upstream',
      )
    else if (child.name.startsWith('oidc')) noteDirective(child, site, from)
  }
}

const translated = new Set(
  `oidcauthnheader oidcauthrequestparams oidcclaimdelimiter oidcclaimprefix oidcclientid oidcclientsecret oidccookie
  oidccookiedomain oidccookiesamesite oidccabundlepath oidccachetype oidccryptopassphrase oidcpassaccesstoken
  oidcpassclaimsas oidcpassidtokenas oidcpassuserinfoas oidcproviderissuer oidcprovidermetadataurl oidcredirecturi
  oidcrediscacheserver oidcrediscachepassword oidcrediscacheusername oidcrediscachedatabase oidcremoteuserclaim
  oidcresponsemode oidcscope oidcsessioninactivitytimeout oidcsessionmaxduration oidcunauthaction
  oidcidtokensignedresponsealg oidcprovidertokenendpointauth oidcwhitelistedclaims oidcblacklistedclaims
  oidcoutgoingproxy`.split(/\s+/),
)
