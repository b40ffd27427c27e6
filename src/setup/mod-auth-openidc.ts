import { parseHttpUrl } from '../config/addresses.ts'
import { placeholder } from '../config/placeholder.ts'
import { type Directive, readApache } from './apache-file.ts'
import type { RemoteUser } from './apache-requirements.ts'
import { admits, conditionsOf, methodsOf, rulesOf, sectionsOf } from './apache-sections.ts'
import { argsOf, issuerOf, type Site, valueOf } from './apache-site.ts'
import { translateHeaders, translateProvider, translateSession } from './mod-auth-openidc-settings.ts'
import { upstreamsOf } from './mod-auth-openidc-upstreams.ts'
import { withoutTranslation } from './mod-auth-openidc-without.ts'
import { Notes } from './notes.ts'
import { type Outcome, outcomesFor, peopleWith } from './outcomes.ts'
import { canMatchBelow } from './path-regions.ts'
import { type Translated, translatedFile } from './translated-file.ts'
import { type GivenText, type Rule, untilDecided, type WrittenUpstream } from './written-config.ts'

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
  const config = {
    version: 1,
    listen: listenOf(sites, from),
    external_url: first.externalUrl,
    provider: translateProvider(first, from),
    session: translateSession(first, from),
    upstreams: Object.assign({}, ...parts.map(({ upstreams }) => upstreams)) as Record<string, WrittenUpstream>,
  }
  for (const directive of sites.flatMap((each) => each.directives)) {
    noteDirective(directive.name, directive.args, from)
    noteInSection(directive, from)
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
  if (expression !== undefined)
    from.decide(
      'OIDCRemoteUserClaim',
      'its regular expression is not translated; write before, after or map of the header (docs/headers.md)',
    )
  return { claim: claim.replace(/@$/, ''), suffix: expression === undefined ? suffix : undefined }
}

function listenOf(sites: readonly Site[], from: Notes): unknown {
  const pairs = sites.flatMap((site) => {
    const [cert_file, key_file] = [valueOf(site, 'SSLCertificateFile'), valueOf(site, 'SSLCertificateKeyFile')]
    return cert_file === undefined ? [] : [{ cert_file, key_file: key_file ?? cert_file }]
  })
  const [pair, ...more] = [...new Map(pairs.map((each) => [each.cert_file, each])).values()]
  if (pair === undefined) {
    from.changed('Listen', 'the gateway listens on 127.0.0.1:8080 in plain http, behind what terminates TLS')
    return '127.0.0.1:8080'
  }
  return { address: '0.0.0.0:443', tls: { ...pair, ...(more.length > 0 && { certificates: more }) } }
}

function translateSite(site: Site, sites: readonly Site[], taken: Set<string>, from: Notes) {
  const sections = sectionsOf(site.directives, site.user, from)
  const { upstreams, closed } = upstreamsOf(site, taken, from)
  const rules = [...closed, ...rulesOf(sections, from)]
  const open = ['/', ...upstreams.map(({ path }) => path)].filter(
    (path) => admits(sections, { method: 'GET', path }) === true,
  )
  if (!sections.some(({ patterns = [], entries }) => patterns.includes('/*') && entries.length > 0)) {
    const paths = open.length > 0 ? open.join(', ') : 'paths that no <Location> names'
    from.decide(
      `${site.externalUrl}/`,
      `as in Apache, all paths without a Require are public, such as ${paths}; if they need a sign-in, remove the last rule`,
    )
  }
  const all: readonly Rule[] = rules.some(({ path }) => path === '/*')
    ? rules
    : [...rules, { path: '/*', access: 'public' }]
  const headers = translateHeaders(site, from)
  const entries = upstreams.map(({ name, path, settings }) => {
    const own = all.filter((rule) => canMatchBelow(rule, path))
    return [
      name,
      {
        ...settings,
        ...(path !== '/' && { path }),
        ...(site !== sites[0] && { external_url: site.externalUrl }),
        headers,
        rules: own,
      },
    ] as const
  })
  return { upstreams: Object.fromEntries(entries), outcomes: outcomes(site, sites.length > 1, sections, upstreams) }
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
      people: peopleWith(values, base),
      networks,
      ...(hasSeveral && { host: new URL(externalUrl).hostname }),
    },
    (request) => admits(sections, request),
  )
}

/** How the names of directives begin that other parts read, or that the gateway does not need. */
const withoutNote = [
  'else files if location proxy requestheader', // read by other parts
  'group loadmodule max min mpm pid server start thread user', // processes
  'keep limitrequest listen name ssl timeout trace usecanonical', // connections and hosts
  'custom error log', // logs, and pages about errors
  'access alias cgi default dir document options script', // files that Apache serves
  'add charset deflate etag expires fileetag filter header mime type', // responses
  'browser rewriteengine set unset', // variables
].flatMap((beginnings) => beginnings.split(' '))

function noteDirective(name: string, args: readonly string[], from: Notes): void {
  if (name.startsWith('oidc')) {
    if (!translated.has(name)) from.untranslated(`OIDC${name.slice(4)}`, withoutTranslation.get(name))
  } else if (/^rewrite(?:rule|cond)$/.test(name)) noteRewrite(args, from)
  else if (/^redirect/.test(name))
    from.lost(name, `${args.join(' ')}: write a rule with respond: { to: … } (docs/responses.md)`)
  else if (!withoutNote.some((beginning) => name.startsWith(beginning)))
    from.lost(name, 'import does not know this directive; find out whether the application needs it')
}

/** Settings of one section: the file has those of the whole site only. */
function noteInSection({ name: section, args, children = [] }: Directive, from: Notes): void {
  for (const child of children.filter(({ name }) => name !== 'oidcunauthaction')) {
    const isHeader = child.name === 'requestheader' || child.name === 'header'
    if (isHeader || translated.has(child.name))
      from.lost(
        `${child.name} in <${section} ${args.join(' ')}>`,
        'it holds for one section, and is not translated; write headers of its rule, or of the upstream',
      )
    else if (child.name.startsWith('oidc')) noteDirective(child.name, child.args, from)
  }
}

/** RewriteRule may send requests elsewhere, or refuse them. */
function noteRewrite(args: readonly string[], from: Notes): void {
  const flags = args.at(-1) ?? ''
  if (/^\[.*\bR(?:=30\d)?\b.*\]$/.test(flags) && /^https:/.test(args[1] ?? ''))
    from.lost('RewriteRule', 'redirects are not translated; write a rule with respond: { to: … } (docs/responses.md)')
  else if (!/^%\{/.test(args[0] ?? '') && args.length > 0)
    from.deny('RewriteRule', 'it may change where requests go, or refuse them; write it as rules or as an upstream')
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
