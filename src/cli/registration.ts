import type { GatewayConfig } from '../config/model.ts'

/** What the provider has to know of a gateway, as client metadata spells it. */
export interface Registration {
  readonly issuer: string
  readonly client_id: string
  readonly redirect_uris: readonly string[]
  readonly post_logout_redirect_uris: readonly string[]
  readonly backchannel_logout_uri: string
}

export function registrationOf({ provider, externalUrl, reservedPrefix, upstreams }: GatewayConfig): Registration {
  const origins = [
    ...new Set([externalUrl, ...upstreams.map((upstream) => upstream.externalUrl)].map((url) => url.origin)),
  ]
  const at = (name: string) => origins.map((origin) => `${origin}${reservedPrefix}${name}`)
  return {
    issuer: provider.issuer,
    client_id: provider.client_id,
    redirect_uris: at('callback'),
    post_logout_redirect_uris: at('signed-out'),
    backchannel_logout_uri: `${externalUrl.origin}${reservedPrefix}backchannel-logout`,
  }
}

/** The same, ready to paste. */
export function registrationText(config: GatewayConfig): string {
  const { issuer, client_id, redirect_uris, post_logout_redirect_uris, backchannel_logout_uri } = registrationOf(config)
  const lines = [
    ...redirect_uris.map((uri) => `  redirect URI               ${uri}`),
    ...post_logout_redirect_uris.map((uri) => `  post-logout redirect URI   ${uri}`),
    `  back-channel logout URI    ${backchannel_logout_uri}`,
  ]
  return `To be registered at ${issuer} for the client ${client_id}:\n${lines.join('\n')}\n`
}
