import { ownMember } from '../../../src/entries/import.ts'
import { timeLimit } from '../common/go-duration.ts'
import { canMatchBelow } from '../common/path-regions.ts'
import type { Translation } from '../common/translation.ts'
import { denyingRule, freeName, type Rule, withSlash, type WrittenUpstream } from '../common/written-config.ts'
import { emailClaim, groupsClaim, onlyFor, translateRules } from './oauth2-proxy-rules.ts'

interface Upstream {
  readonly name: string
  readonly origin: string
  readonly path: string
  /** The only path of the upstream; `undefined`: `path` and all paths below it. */
  readonly only: string | undefined
  /** oauth2-proxy responds itself, and there is no application. */
  readonly respond?: { readonly status: number } | { readonly files: string }
}

/**
 * Translates the settings of applications, their identity headers and who has access to
 * `upstreams:`.
 */
export function translateUpstreams(from: Translation): Readonly<Record<string, WrittenUpstream>> {
  const { upstreams, lost } = upstreamsOf(from)
  const settings = {
    host_header: from.isOn('pass_host_header', true) ? undefined : 'upstream',
    response_timeout: timeLimit(from.text('upstream_timeout') ?? ''),
    headers: headersOf(from),
  }
  const rules = [...lost.map(({ path, shown }) => denyingRule(`${path}*`, denied(shown))), ...translateRules(from)]
  return Object.fromEntries(
    upstreams.map(({ name, origin, path, only, respond }) => {
      if (respond !== undefined)
        return [name, { ...(path !== '/' && { path }), rules: respondingRules(path, respond, rules, from) }] as const
      const below = rules.filter((rule) => canMatchBelow(rule, path))
      const own = only !== undefined ? onlyFor(only, rules) : path === '/' ? below : [withSlash(path), ...below]
      return [
        name,
        { url: origin, ...(path !== '/' && { path }), ...settings, ...(own.length > 0 && { rules: own }) },
      ] as const
    }),
  )
}

/** Rules with a response. Files have one rule, because a narrower one would name another folder. */
function respondingRules(
  path: string,
  respond: NonNullable<Upstream['respond']>,
  rules: readonly Rule[],
  from: Translation,
): readonly object[] {
  const own = rules.filter((rule) => canMatchBelow(rule, path))
  const whole = own.filter((rule) => rule.path === '/*' && rule.methods === undefined)
  const last: readonly Rule[] = whole.length > 0 ? whole : [{ path: '/*' }]
  if ('status' in respond)
    return [...own.filter((rule) => !whole.includes(rule)), ...last].map((rule) => ({ ...rule, respond }))
  if (own.length > whole.length)
    from.lost('upstreams', `the rules of narrower paths do not hold for ${path}: all of its files need a sign-in`)
  return last.map((rule) => ({ ...rule, path: `${path}*`, respond }))
}

/** An upstream without a translation. Its paths must not lead to another upstream instead. */
interface LostUpstream {
  readonly path: string
  readonly shown: string
}

function denied(shown: string): string {
  return `These paths were those of ${shown}. Decide which upstream they have.`
}

/** What to write for an upstream that is not an http or https URL, by its scheme. */
const otherWays: Readonly<Record<string, string>> = {
  'file:': 'to serve a folder, write a rule with respond: { files: /PATH } (docs/responses.md)',
  'static:': 'write a rule with respond: { status: 200 } (docs/responses.md)',
  'unix:': 'write url: unix:/PATH for a socket in the file system',
}

/** Who has access differs: the other proxy asks another endpoint, and says which request it is. */
const forAskingProxy =
  'import does not translate that: in place of respond, write forward_auth: true, and in headers the names that the proxy reads, such as X-Auth-Request-User; name the proxy in trusted_proxies, and let it ask as docs/forward-auth.md says'

function upstreamsOf(from: Translation): { readonly upstreams: Upstream[]; readonly lost: LostUpstream[] } {
  const found: Upstream[] = []
  const lost: LostUpstream[] = []
  for (const text of from.list('upstreams')) {
    const url = URL.canParse(text) ? new URL(text) : undefined
    const shown = text.replace(/\/\/.*@/, '//…@')
    const own = url === undefined ? undefined : ownResponse(url)
    if (own !== undefined) {
      if ('status' in own.respond && !from.isOff('set_xauthrequest'))
        from.decide('upstreams', `${shown} with set_xauthrequest is for a proxy that asks, and ${forAskingProxy}`)
      if (found.some((other) => other.path === own.path))
        from.lost('upstreams', `${shown} has the same path as another upstream`)
      else
        found.push({
          name: freeName('static', (name) => found.some((other) => other.name === name)),
          origin: '',
          only: undefined,
          ...own,
        })
      continue
    }
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      from.lost('upstreams', `${shown}: ${ownMember(otherWays, url?.protocol ?? '') ?? 'this is no http or https URL'}`)
      const path = url?.protocol === 'file:' ? (url.hash.slice(1) || url.pathname).replace(/\/*$/, '/') : '/'
      if (path !== '/' && /^(?:\/[\w.~-]+)+\/$/.test(path)) lost.push({ path, shown })
      else if (path !== '/') from.deny('upstreams', `decide which upstream has the paths of ${shown}`)
      continue
    }
    if (url.username + url.password !== '')
      from.lost(
        'upstreams',
        `${shown}: the gateway takes no password from a URL; write headers: { Authorization: { env: NAME } }, with the value that the application expects`,
      )
    const path = url.pathname.endsWith('/') ? url.pathname : `${url.pathname}/`
    const only = path === url.pathname ? undefined : url.pathname
    if (only !== undefined)
      from.changed(
        'upstreams',
        `${shown} was for exactly this path; here it also has the paths below it, and the rules deny them`,
      )
    if (found.some((other) => other.path === path))
      from.lost('upstreams', `${shown} has the same path as another upstream`)
    else found.push({ name: nameFor(url, found), origin: url.origin, path, only })
  }
  if (found.length > 0) return { upstreams: found, lost }
  from.decide(
    'upstreams',
    'write the URL of the application as upstreams.app.url; for auth_request of another proxy, write forward_auth: true in place of url (docs/forward-auth.md)',
  )
  return { upstreams: [{ name: 'app', origin: 'http://127.0.0.1:3000', path: '/', only: undefined }], lost }
}

/** `static://202`, or `file:///FOLDER#/PATH/`. */
function ownResponse({
  protocol,
  host,
  pathname,
  hash,
}: URL): Required<Pick<Upstream, 'path' | 'respond'>> | undefined {
  const status = Number(host)
  const isStatus = Number.isInteger(status) && status >= 200 && status <= 599 && (status < 300 || status > 399)
  if (protocol === 'static:' && isStatus && /^\/?$/.test(pathname)) return { path: '/', respond: { status } }
  const path = hash.slice(1) || pathname
  const isFolder = protocol === 'file:' && host === '' && /^(?:\/[\w.-]+)+\/?$/.test(pathname)
  if (!isFolder || pathname === '/dev/null' || !/^(?:\/[\w.-]+)*\/$/.test(path)) return undefined
  return { path, respond: { files: pathname.replace(/\/$/, '') } }
}

function nameFor({ hostname }: URL, others: readonly Upstream[]): string {
  const first = hostname.split('.')[0] ?? ''
  const base = /^[a-z][\w-]*$/i.test(first) && first !== 'localhost' ? first : 'app'
  return freeName(base, (name) => others.some((other) => other.name === name))
}

/** Identity headers. oauth2-proxy sends them unless both options that control them are off. */
function headersOf(from: Translation): object | undefined {
  const [byBasicAuth, byHeaders] = [from.isOn('pass_basic_auth', true), from.isOn('pass_user_headers', true)]
  const isByEmail = from.isOn('prefer_email_to_user')
  const [email, groups] = [emailClaim(from), groupsClaim(from)]
  const user = isByEmail ? email : 'sub'
  const authorization = authorizationOf(from, byBasicAuth, user)
  if (!byBasicAuth && !byHeaders) return authorization && { Authorization: authorization }
  return {
    'X-Forwarded-User': user,
    ...(!isByEmail && { 'X-Forwarded-Email': email }),
    'X-Forwarded-Preferred-Username': 'preferred_username',
    'X-Forwarded-Groups': { claim: groups, join: ',' },
    ...(authorization !== undefined && { Authorization: authorization }),
  }
}

/** The `Authorization` that the application gets. `user`: the claim with the person's name. */
function authorizationOf(from: Translation, byBasicAuth: boolean, user: string): object | undefined {
  const password = from.text('basic_auth_password')
  const isBasic = byBasicAuth && password !== undefined
  if (from.isOn('pass_authorization_header')) {
    if (isBasic) from.lost('basic_auth_password', 'the application receives the ID Token instead')
    return { bearer: 'id_token' }
  }
  if (!isBasic) return undefined
  from.changed('basic_auth_password', 'put the password into the environment variable BASIC_AUTH_PASSWORD')
  return { basic: { user, password: { env: 'BASIC_AUTH_PASSWORD' } } }
}
