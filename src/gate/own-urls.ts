import type { GatewayConfig } from '../config/model.ts'

type OwnUrlConfig = Pick<GatewayConfig, 'provider' | 'reservedPrefix'>

/** The names of the gateway's own URLs, below the prefix, and the methods that each takes. */
function ownUrls({ provider }: Pick<GatewayConfig, 'provider'>): ReadonlyMap<string, readonly string[]> {
  return new Map([
    ['sign-in', ['GET', 'HEAD']],
    ['initiate-login', ['GET', 'HEAD', 'POST']],
    ['callback', provider.response_mode === 'form_post' ? ['GET', 'POST'] : ['GET']],
    ['sign-out', ['GET', 'POST']],
    ['signed-out', ['GET', 'HEAD']],
    ['backchannel-logout', ['POST']],
    ...(provider.frontchannelLogout ? ([['frontchannel-logout', ['GET']]] as const) : []),
    ['session', ['GET', 'HEAD']],
  ])
}

/** Why nothing is done for a request below the prefix: there is no such URL, in this very spelling, or it does not take the method. */
export type OwnUrlRefusal =
  { readonly code: 'ERR_NO_ROUTE' } | { readonly code: 'ERR_METHOD_NOT_ALLOWED'; readonly allowed: readonly string[] }

/** `path` is canonical, and without the query. */
export function ownUrlRefusal(method: string, path: string, config: OwnUrlConfig): OwnUrlRefusal | undefined {
  const { reservedPrefix } = config
  const allowed = path.startsWith(reservedPrefix) ? ownUrls(config).get(path.slice(reservedPrefix.length)) : undefined
  if (allowed === undefined) return { code: 'ERR_NO_ROUTE' }
  return allowed.includes(method) ? undefined : { code: 'ERR_METHOD_NOT_ALLOWED', allowed }
}
