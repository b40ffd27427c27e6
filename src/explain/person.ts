import { withLongNames } from '../config/build/claim-names.ts'
import type { GatewayConfig } from '../config/model.ts'
import type { Claims } from '../core/claims.ts'
import type { SessionKey } from '../core/names.ts'
import type { Authentication } from '../core/step-up.ts'
import type { Identity } from '../gate/identify.ts'

/**
 * The identity of a person with these claims, which may have the short names of the configuration.
 * Without claims: nobody is signed in.
 */
export function personWith(claims: Claims | undefined, { provider }: Pick<GatewayConfig, 'provider'>): Identity {
  if (claims === undefined) return { kind: 'anonymous', staleCookie: false }
  const sub = String(claims['sub'] ?? 'somebody')
  const record = {
    iss: provider.issuer,
    sub,
    created_at: 0,
    absolute_expires_at: Infinity,
    // Stand-ins: `explain` never shows a token.
    tokens: { access_token: 'token', obtained_at: 0, id_token: 'token' },
    claims: { iss: provider.issuer, ...withLongNames(claims, provider.claims), sub },
    userinfo_read_at: 0,
    authentication: authenticationIn(claims),
  }
  return { kind: 'signed_in', session: { key: 'explained' as SessionKey, version: 1, record, bytes: 0 } }
}

/** Without `auth_time`, the person has just authenticated. */
function authenticationIn({ acr, auth_time }: Claims): Authentication {
  return {
    ...(typeof acr === 'string' && { acr }),
    auth_time: typeof auth_time === 'number' ? auth_time * 1000 : Infinity,
  }
}
