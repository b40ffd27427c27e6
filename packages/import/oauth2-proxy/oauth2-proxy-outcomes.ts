import { type Claims, type Outcome, outcomesFor, peopleWith, type TestRequest, valuesOf } from '../common/outcomes.ts'
import type { Translation } from '../common/translation.ts'
import { emailClaim, groupsClaim, roleOf } from './oauth2-proxy-rules.ts'

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
  const url = URL.canParse(upstream) ? new URL(upstream) : undefined
  const path = (url?.protocol === 'file:' && url.hash.slice(1)) || (url?.pathname ?? '/')
  return [path.endsWith('/') && path !== '/' ? `${path}x` : path || '/']
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
  const [role] = from.list('allowed_roles').map(roleOf)
  const values = [address(domain === '*' ? 'example.com' : domain)]
  if (group !== undefined) values.push([groupsClaim(from), group])
  if (role !== undefined) values.push([role.claim, role.name])
  const hd = domain === '*' ? 'example.com' : domain
  const base = { email_verified: true, ...((from.text('provider') ?? 'google') === 'google' && { hd }) }
  const stranger = peopleWith([address('elsewhere.example'), ...values.slice(1)], base)[0]
  return [...peopleWith(values, base), ...(stranger === undefined ? [] : [{ ...stranger, sub: 'zoe' }])]
}

/**
 * Domains and groups both restrict. Several domains are alternatives, and so are groups and roles.
 */
function admitsPerson(person: Claims, from: Translation): boolean | undefined {
  const [address] = valuesOf(person, emailClaim(from))
  if (address === undefined) return false
  const domains = from.list('email_domains')
  const domain = address.slice(address.lastIndexOf('@') + 1)
  const isOfDomain = domains.some(
    (each) => each === '*' || each === domain || (/^\*?\./.test(each) && domain.endsWith(each.replace(/^\*/, ''))),
  )
  if (!isOfDomain) return false
  const asValue = (name: string) => ({ claim: groupsClaim(from), name })
  const [groups, ofKeycloak] = [from.list('allowed_groups').map(asValue), from.list('keycloak_groups').map(asValue)]
  const roles = from.list('allowed_roles').map(roleOf)
  const isMet = [groups, ofKeycloak, roles]
    .filter(({ length }) => length > 0)
    .map((values) => values.some(({ claim, name }) => valuesOf(person, claim).includes(name)))
  if (isMet.every(Boolean)) return true
  // Which of these options count depends on the provider.
  const isKnown = ofKeycloak.length === 0 && (roles.length === 0 || from.text('provider') === 'keycloak-oidc')
  return isKnown ? isMet.some(Boolean) : undefined
}
