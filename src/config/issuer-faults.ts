/** Why an issuer cannot be one, and what to write. */
export interface IssuerFault {
  readonly what: string
  readonly todo: string
  /** It may be intended. */
  readonly isWarning?: true
}

/** Finds out why a text is not the issuer of an OpenID Provider, where that is known. */
export function issuerFault(text: string): IssuerFault | undefined {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined
  for (const check of checks) {
    const fault = check(url, text)
    if (fault !== undefined) return fault
  }
  return undefined
}

type IssuerCheck = (url: URL, text: string) => IssuerFault | undefined

const checks: readonly IssuerCheck[] = [
  discovery,
  keycloak,
  consoles,
  authentik,
  entra,
  google,
  cognito,
  withoutOpenid,
  endpoints,
  others,
  slash,
]

function discovery({ pathname }: URL, text: string): IssuerFault | undefined {
  if (!/\/\.well-known(?:\/|$)/.test(pathname)) return undefined
  return {
    what: 'is the address of the discovery document, and not the issuer',
    todo: writing(text.replace(/\/\.well-known.*/, '')),
  }
}

/** How to write an issuer that was found in another address, which may lack a part. */
function writing(issuer: string): string {
  return issuerFault(issuer)?.todo ?? `write ${issuer}`
}

/** Hosts where people administer a provider. */
const hostsOfConsoles =
  /^(?:portal\.azure\.com|entra\.microsoft\.com|aad\.portal\.azure\.com|console\.(?:cloud|developers)\.google\.com|admin\.google\.com|manage\.auth0\.com|(?:[\w-]+\.)?console\.aws\.amazon\.com)$/

function consoles({ hostname, pathname, hash, origin }: URL): IssuerFault | undefined {
  const what = 'is the address of an administration console'
  const keycloak = /^(?<base>(?:\/auth)?)\/admin\/(?<realm>[^/]+)\/console(?:\/|$)/.exec(pathname)?.groups
  if (keycloak !== undefined) {
    const realm = /^#\/([\w.-]+)/.exec(hash)?.[1] ?? keycloak['realm'] ?? 'REALM'
    return { what: `${what} of Keycloak`, todo: `write ${origin}${keycloak['base'] ?? ''}/realms/${realm}` }
  }
  const okta = /^([\w-]+)-admin(\.okta(?:preview)?\.com|\.okta-emea\.com)$/.exec(hostname)
  if (okta !== null) return { what: `${what} of Okta`, todo: `write https://${okta[1]}${okta[2]}` }
  if (hostsOfConsoles.test(hostname))
    return { what, todo: 'write the issuer that the discovery document of the provider has' }
  const authentik = /^\/if\/(?:admin|user|flow)(?:\/|$)/.test(pathname)
  if (authentik)
    return { what: 'is the address of pages of authentik', todo: `write ${origin}/application/o/SLUG/, with its slash` }
  const isPage =
    /(?:^|\/)(?:admin|console|dashboard|ui)(?:\/(?:login|console|index\.html)?)?$|\/(?:login|signin|account)\/?$/
  if (isPage.test(pathname))
    return {
      what: 'looks like the address of a page for people',
      todo: 'write the issuer that the discovery document of the provider has',
      isWarning: true,
    }
  return undefined
}

function keycloak({ hostname, pathname, origin }: URL): IssuerFault | undefined {
  const [, base = '', realm, rest = ''] = /^(.*)\/realms(?:\/([^/]*))?(.*)$/.exec(pathname) ?? []
  if (pathname.includes('/realms/') || pathname.endsWith('/realms')) {
    if (realm === undefined || realm === '')
      return { what: 'has no realm', todo: `write ${origin}${base}/realms/REALM` }
    if (base.endsWith(`/realms/${realm}`)) return { what: `has /realms/${realm} twice`, todo: `write ${origin}${base}` }
    const known = /^\/(?:protocol|account|login-actions|broker|clients-registrations|\.well-known)(?:\/|$)/
    if (rest === '/' || known.test(rest))
      return {
        what:
          rest === '/' ? 'ends with a slash, and the issuer of Keycloak does not' : 'is an address below the issuer',
        todo: `write ${origin}${base}/realms/${realm}`,
      }
    return undefined
  }
  if (/^(?:\/auth)?\/realm\/[^/]+\/?$/.test(pathname))
    return {
      what: 'has /realm/, and the issuer of Keycloak has /realms/',
      todo: `write ${origin}${pathname.replace('/realm/', '/realms/').replace(/\/$/, '')}`,
      isWarning: true,
    }
  const isOwnHost = /^(?:keycloak|kc)[.-]/.test(hostname)
  const [, folder = '', name = 'REALM'] = /^((?:\/auth)?)(?:\/([\w-]+))?\/?$/.exec(pathname) ?? []
  // Keycloak had the path /auth before its version 17.
  if (/^\/auth\/?$/.test(pathname) || (isOwnHost && /^(?:\/auth)?(?:\/[\w-]+)?\/?$/.test(pathname)))
    return {
      what: `has no ${name === 'REALM' ? 'realm' : '/realms/'}, which the issuer of Keycloak has`,
      todo: `write ${origin}${folder}/realms/${name}`,
      isWarning: true,
    }
  return undefined
}

function authentik({ pathname, origin }: URL): IssuerFault | undefined {
  const [, base = '', name = '', rest = ''] = /^(.*\/application\/o)\/([^/]+)(.*)$/.exec(pathname) ?? []
  if (base === '' || rest === '/')
    return /^(?:authorize|token|userinfo)$/.test(name)
      ? { what: `is the address of an endpoint (${name})`, todo: `write ${origin}${base}/SLUG/` }
      : undefined
  return { what: 'is not the issuer of authentik, which ends with a slash', todo: `write ${origin}${base}/${name}/` }
}

const idOfTenant = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

function entra({ hostname, pathname }: URL, text: string): IssuerFault | undefined {
  const [, tenant = ''] = pathname.split('/')
  if (hostname === 'sts.windows.net')
    return /^\/[^/]+\/$/.test(pathname)
      ? undefined
      : { what: 'is not an issuer of Entra ID', todo: 'write https://login.microsoftonline.com/TENANT_ID/v2.0' }
  if (
    !/^login\.(?:microsoftonline\.(?:com|us)|partner\.microsoftonline\.cn|microsoft\.com|windows\.net)$/.test(hostname)
  )
    return undefined
  const host = /^login\.(?:microsoft\.com|windows\.net)$/.test(hostname) ? 'login.microsoftonline.com' : hostname
  const write = (id: string) => `write https://${host}/${id}/v2.0`
  if (/^(?:common|organizations|consumers)$/i.test(tenant))
    return {
      what: `has ${tenant} in place of a tenant: tokens name the tenant of the person as their issuer`,
      todo: `${write('TENANT_ID')}, with the directory (tenant) ID of the app registration`,
    }
  if (tenant === '' || /^(?:v2\.0|oauth2)$/.test(tenant)) return { what: 'has no tenant', todo: write('TENANT_ID') }
  if (!idOfTenant.test(tenant))
    return { what: 'must have the ID of the tenant, not its name', todo: `${write('TENANT_ID')}, as tokens name it` }
  if (text.endsWith(`/${tenant}/v2.0`) && host === hostname) return undefined
  if (/^\/[^/]+\/?$/.test(pathname))
    return { what: 'lacks /v2.0, with which the issuer of Entra ID ends', todo: write(tenant) }
  return { what: 'is not the issuer of Entra ID', todo: write(tenant) }
}

function google({ hostname, pathname }: URL, text: string): IssuerFault | undefined {
  const isGoogle = /^(?:(?:accounts|www|oauth2)\.)?google\.com$|^(?:oauth2|www|openidconnect)\.googleapis\.com$/
  if (!isGoogle.test(hostname) || /^https:\/\/accounts\.google\.com$/i.test(text)) return undefined
  const isSlash = hostname === 'accounts.google.com' && pathname === '/'
  return {
    what: isSlash ? 'ends with a slash, and the issuer of Google does not' : 'is not the issuer of Google',
    todo: 'write https://accounts.google.com',
  }
}

function cognito({ hostname, pathname }: URL): IssuerFault | undefined {
  const region = /^(?:cognito-idp|.+\.auth(?:-fips)?)\.([a-z\d-]+)\.amazon(?:aws|cognito)\.com(?:\.cn)?$/.exec(
    hostname,
  )?.[1]
  if (region === undefined) return undefined
  const todo = `write https://cognito-idp.${region}.amazonaws.com/USER_POOL_ID`
  if (!hostname.startsWith('cognito-idp.'))
    return { what: 'is the domain of the sign-in pages of Amazon Cognito', todo }
  return /^\/[\w-]+$/.test(pathname) ? undefined : { what: 'is not the ID of one user pool of Amazon Cognito', todo }
}

/** Hosts of providers whose issuer is known to end without a slash, or with one. */
function others({ hostname, pathname, origin }: URL, text: string): IssuerFault | undefined {
  if (/\.auth0\.com$/.test(hostname) && (pathname !== '/' || !text.endsWith('/')))
    return {
      what: pathname === '/' ? 'lacks the slash, with which the issuer of Auth0 ends' : 'is not the issuer of Auth0',
      todo: `write ${origin}/`,
    }
  if (/\.okta(?:preview|-emea)?\.com$/.test(hostname)) {
    const [server = ''] = /^\/oauth2\/(?!v1(?:\/|$))[\w-]+/.exec(pathname) ?? []
    const todo = `write ${origin}${server}`
    if (text.endsWith('/')) return { what: 'ends with a slash, and the issuer of Okta does not', todo }
    if (pathname !== '/' && pathname !== server) return { what: 'is not an issuer of Okta', todo }
  }
  if (hostname === 'gitlab.com' && !/^https:\/\/gitlab\.com$/i.test(text))
    return { what: 'is not the issuer of GitLab', todo: 'write https://gitlab.com' }
  return undefined
}

function withoutOpenid({ hostname }: URL): IssuerFault | undefined {
  const found = /^(?:(?:www|api)\.)?(github\.com|bitbucket\.org|twitter\.com|x\.com|reddit\.com)$/.exec(hostname)?.[1]
  if (found === undefined) return undefined
  return {
    what: `is ${found}, which issues no ID Tokens`,
    todo: 'write kind: oauth2 beside it, with metadata and subject (docs/providers/oauth2.md)',
  }
}

function endpoints({ pathname, origin }: URL): IssuerFault | undefined {
  // A realm or an application may have the name of an endpoint.
  if (/\/(?:realms|o)\/[^/]+$/.test(pathname)) return undefined
  const found =
    /^(.*?)((?:\/(?:oauth2?|connect|oidc|openid-connect|v1|v2|v2\.0|protocol|login|api))*)\/(authorize|auth|token|userinfo|user_?info|jwks|jwks\.json|keys|certs|introspect|introspection|revoke|logout|endsession|end_session)$/.exec(
      pathname,
    )
  if (found === null) return undefined
  const [, before = '', folders = '', name = ''] = found
  // A tenant may have the name of an endpoint.
  const isSure = folders !== '' || /[._]/.test(name)
  return {
    what: `${isSure ? 'is' : 'looks like'} the address of an endpoint (${name})`,
    todo: `write the issuer, which the discovery document has: probably ${writing(`${origin}${before}`).replace('write ', '')}`,
    ...(!isSure && { isWarning: true as const }),
  }
}

function slash(_: URL, text: string): IssuerFault | undefined {
  return /^https?:\/\/.+\/\/$/.test(text)
    ? { what: 'ends with two slashes', todo: 'write it as the discovery document does' }
    : undefined
}
