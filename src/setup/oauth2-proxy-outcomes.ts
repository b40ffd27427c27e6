import { emailClaim, groupsClaim } from './oauth2-proxy-rules.ts'
import { type Claims, type Outcome, outcomesFor, peopleWith, type TestRequest, valuesOf } from './outcomes.ts'
import type { Translation } from './translation.ts'

/** What oauth2-proxy decides about requests, from its options and not from the new rules. */
export function outcomesOfOauth2Proxy(from: Translation): Outcome[] {
  const routes = [
    ...from.list('skip_auth_routes').map(routeOf),
    ...from.list('skip_auth_regex').map((pattern) => ({ method: undefined, isNegated: false, pattern })),
  ]
  const patterns = [...routes.map(({ pattern }) => pattern), ...from.list('api_routes')]
  const methods = routes.flatMap(({ method }) => method ?? []).concat(from.isOn('skip_auth_preflight') ? 'OPTIONS' : [])
  const isOpen = ({ method, path }: TestRequest) =>
    (method === 'OPTIONS' && from.isOn('skip_auth_preflight')) ||
    routes.some(
      (route) =>
        (route.method ?? method) === method &&
        (new RegExp(route.pattern).test(path) ? !route.isNegated : route.isNegated),
    )
  const known = routes.every(({ pattern }) => isRegExp(pattern))
  return outcomesFor(
    {
      paths: ['/', ...from.list('upstreams').flatMap(folderOf), ...patterns.flatMap(pathsAround)],
      methods: methods,
      people: peopleFor(from),
    },
    (request) => {
      if (!known) return undefined
      if (isOpen(request)) return true
      if (request.as === undefined) return false
      return from.denials.length > 0 ? undefined : admitsPerson(request.as, from)
    },
  )
}

function folderOf(upstream: string): readonly string[] {
  const path = URL.canParse(upstream) ? new URL(upstream).pathname : '/'
  return [path.endsWith('/') && path !== '/' ? `${path}x` : path]
}

/** `METHOD=pattern`, `METHOD!=pattern` for all other paths, or a pattern for all methods. */
function routeOf(route: string) {
  const [, method, negated, pattern = ''] = /^(?:([A-Za-z]+)?(!)?=)?([^]*)$/.exec(route) ?? []
  return { method: method?.toUpperCase(), isNegated: negated !== undefined, pattern }
}

function isRegExp(pattern: string): boolean {
  try {
    return new RegExp(pattern).source !== ''
  } catch {
    return false
  }
}

/** Paths that a pattern probably matches, and others that are similar. */
function pathsAround(pattern: string): readonly string[] {
  const text = pattern
    .replace(/^\^/, '')
    .replace(/\$$/, '')
    .replace(/\(\/\.\*\)\?$|\(\/\|$|\(\/\|\$\)$|\.\*$/, '')
    .replaceAll(/\\(.)/g, '$1')
  const path = text.startsWith('/') ? text : `/${text}`
  if (!/^(?:\/[\w.~-]+)+\/?$/.test(path)) return []
  const bare = path.replace(/\/$/, '')
  return [path, `${bare}/x`, `${bare}-other`, ...(pattern.startsWith('^') ? [] : [`/in${bare}`])]
}

function peopleFor(from: Translation): readonly Claims[] {
  const [domain = '*'] = from.list('email_domains').map((text) => text.replace(/^\*?\./, 'sub.'))
  const email = emailClaim(from)
  const address = (of: string): [string, string] => [email, `person@${of}`]
  const [group] = [...from.list('allowed_groups'), ...from.list('keycloak_groups')]
  const values = [address(domain === '*' ? 'example.com' : domain)]
  if (group !== undefined) values.push([groupsClaim(from), group])
  const hd = domain === '*' ? 'example.com' : domain
  const base = { email_verified: true, ...((from.text('provider') ?? 'google') === 'google' && { hd }) }
  const stranger = peopleWith([address('elsewhere.example'), ...values.slice(1)], base)[0]
  return [...peopleWith(values, base), ...(stranger === undefined ? [] : [{ ...stranger, sub: 'zoe' }])]
}

/** Domains and groups both restrict. Several domains are alternatives, and so are groups. */
function admitsPerson(person: Claims, from: Translation): boolean | undefined {
  const [address] = valuesOf(person, emailClaim(from))
  if (address === undefined) return false
  const domains = from.list('email_domains')
  const domain = address.slice(address.lastIndexOf('@') + 1)
  const isOfDomain = domains.some(
    (each) => each === '*' || each === domain || (/^\*?\./.test(each) && domain.endsWith(each.replace(/^\*/, ''))),
  )
  if (!isOfDomain) return false
  // Which of these options count depends on the provider.
  if (['allowed_roles', 'keycloak_groups'].some((option) => from.list(option).length > 0)) return undefined
  const groups = from.list('allowed_groups')
  return groups.length === 0 || valuesOf(person, groupsClaim(from)).some((group) => groups.includes(group))
}
