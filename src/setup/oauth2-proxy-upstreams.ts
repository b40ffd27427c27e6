import { durationText, goDurationMs } from './go-duration.ts'
import { claimPath, onlyFor, translateRules, type Rule } from './oauth2-proxy-rules.ts'
import type { Translation } from './translation.ts'

interface Upstream {
  readonly name: string
  readonly origin: string
  readonly path: string
  /** The one path that it was for; absent: all that lies below its path. */
  readonly only: string | undefined
}

/**
 * `upstreams:` in place of what oauth2-proxy says of applications, of what they are told, and of
 * who comes in.
 */
export function translateUpstreams(from: Translation): object {
  const upstreams = upstreamsOf(from)
  const timeout = goDurationMs(from.text('upstream_timeout') ?? '')
  const settings = {
    host_header: from.isOn('pass_host_header', true) ? undefined : 'upstream',
    response_timeout:
      timeout !== undefined && timeout >= 10 && timeout <= 86_400_000 ? durationText(timeout) : undefined,
    headers: headersOf(from),
  }
  const rules = translateRules(from)
  return Object.fromEntries(
    upstreams.map(({ name, origin, path, only }) => {
      const own = only === undefined ? rules.filter((rule) => concerns(rule, path)) : onlyFor(only, rules)
      return [
        name,
        { url: origin, ...(path !== '/' && { path }), ...settings, ...(own.length > 0 && { rules: own }) },
      ] as const
    }),
  )
}

/** Whether a rule can match what lies below a path. */
function concerns({ path: rulePath }: Rule, path: string): boolean {
  const prefix = rulePath.replace(/\*.*$/, '')
  return prefix.startsWith(path) || (prefix !== rulePath && path.startsWith(prefix))
}

function upstreamsOf(from: Translation): Upstream[] {
  const found: Upstream[] = []
  for (const written of from.list('upstreams')) {
    const url = URL.canParse(written) ? new URL(written) : undefined
    const shown = written.replace(/\/\/.*@/, '//…@')
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      const why = 'applications are reached by http or https; files, sockets and fixed answers are not served'
      from.note('upstreams', 'lost', `${shown}: ${why}`)
      continue
    }
    if (url.username + url.password !== '')
      from.note('upstreams', 'lost', `${shown}: a name and a password are not passed on to an application`)
    const path = url.pathname.endsWith('/') ? url.pathname : `${url.pathname}/`
    const only = path === url.pathname ? undefined : url.pathname
    if (only !== undefined)
      from.note(
        'upstreams',
        'changed',
        `${shown} was for this very path; here what lies below it leads there, too, and is closed`,
      )
    if (found.some((other) => other.path === path))
      from.note('upstreams', 'lost', `${shown} is for the same path as another one`)
    else found.push({ name: nameFor(url, found), origin: url.origin, path, only })
  }
  if (found.length > 0) return found
  from.note(
    'upstreams',
    'decide',
    'the gateway stands before the application itself (it does not answer auth_request of another proxy): write its address as upstreams.app.url',
  )
  return [{ name: 'app', origin: 'http://127.0.0.1:3000', path: '/', only: undefined }]
}

function nameFor({ hostname }: URL, others: readonly Upstream[]): string {
  const first = hostname.split('.')[0] ?? ''
  const base = /^[a-z][\w-]*$/i.test(first) && first !== 'localhost' ? first : 'app'
  const isTaken = (name: string) => others.some((other) => other.name === name)
  let name = base
  for (let number = 2; isTaken(name); number++) name = `${base}-${number}`
  return name
}

/**
 * Both ways to tell them are on unless they were switched off, and each of them alone is enough.
 */
function headersOf(from: Translation): object | undefined {
  const [byBasicAuth, byHeaders] = [from.isOn('pass_basic_auth', true), from.isOn('pass_user_headers', true)]
  const isByEmail = from.isOn('prefer_email_to_user')
  const email = claimPath(from.text('oidc_email_claim') ?? 'email')
  const groups = claimPath(from.text('oidc_groups_claim') ?? 'groups')
  if (!byBasicAuth && !byHeaders) return undefined
  return {
    'X-Forwarded-User': isByEmail ? email : 'sub',
    ...(!isByEmail && { 'X-Forwarded-Email': email }),
    'X-Forwarded-Preferred-Username': 'preferred_username',
    'X-Forwarded-Groups': { claim: groups, join: ',' },
  }
}
