/**
 * The programs whose configuration `gatehouse import` translates, and what only theirs contains.
 * Other programs have no importer.
 */
const marks: Readonly<Record<string, RegExp>> = {
  'oauth2-proxy':
    /^[ \t]*(?:https?_address|upstreams|email_domains|oidc_issuer_url|skip_auth_routes|set_xauthrequest)[ \t]*=|\bOAUTH2_PROXY_[A-Z_]+["']?[ \t]*[:=]|\bimage:.*oauth2[-_]?proxy|^oauth2-proxy\b/m,
  mod_auth_openidc: /^[ \t]*(?:OIDC[A-Z][A-Za-z]+|AuthType[ \t]+(?:openid-connect|auth-openidc|oauth20))(?:[ \t]|$)/m,
  pomerium: /^(?:authenticate_service_url|idp_provider):|^[ \t]*-[ \t]+from:[ \t]*["']?https?:/m,
  'traefik-forward-auth':
    /^[ \t]*(?:default-provider|auth-host|providers\.\w+\.[\w-]+)[ \t]*=|\bimage:.*traefik-forward-auth/m,
  vouch: /^vouch:[ \t]*(?:#.*)?$|\bVOUCH_[A-Z_]+["']?[ \t]*[:=]|\bimage:.*vouch-proxy/m,
}

/** The program whose configuration a text looks like, by its name for `gatehouse import`. */
export function programOf(text: string): string | undefined {
  return Object.entries(marks).find(([, mark]) => mark.test(text))?.[0]
}
