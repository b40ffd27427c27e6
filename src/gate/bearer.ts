import type { RuleConfig } from '../config/model/rule.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { BearerChallenge } from '../core/bearer-challenge.ts'
import type { Claims, JsonValue } from '../core/claims.ts'
import { metadataUrl } from './resource-metadata.ts'

const credentials = /^bearer +([\w.~+/-]+=*) *$/i
/** Any field with the scheme, also one with several schemes or tokens. */
const mentionsBearer = /(?:^|,)\s*bearer(?:\s|,|$)/i

/**
 * The access token of an `Authorization` header (RFC 6750 §2.1). `malformed`: the header has the
 * scheme, but not exactly one token. `undefined`: another scheme, or no header.
 */
export function bearerToken(authorization: string | undefined): { readonly token: string } | 'malformed' | undefined {
  if (authorization === undefined || !mentionsBearer.test(authorization)) return undefined
  const token = credentials.exec(authorization)?.[1]
  return token === undefined ? 'malformed' : { token }
}

/** The scopes that a request of a rule needs and the token does not have. */
export function missingScopes(
  claims: Claims,
  { accessTokens: ofUpstream }: Pick<UpstreamConfig, 'accessTokens'>,
  { accessTokens: ofRule }: Pick<RuleConfig, 'accessTokens'>,
): readonly string[] {
  const needed = [...(ofUpstream?.scopes ?? []), ...(ofRule?.scopes ?? [])]
  if (needed.length === 0) return needed
  // Some providers send a list, or call it "scp".
  const granted = new Set([...scopesIn(claims['scope']), ...scopesIn(claims['scp'])])
  return needed.filter((scope) => !granted.has(scope))
}

function scopesIn(claim: JsonValue | undefined): readonly string[] {
  if (typeof claim === 'string') return claim.split(' ')
  return Array.isArray(claim) ? claim.filter((each) => typeof each === 'string') : []
}

/** The challenge of a rule. */
export function challengeOf(
  upstream: UpstreamConfig,
  rule: RuleConfig,
  error?: BearerChallenge['error'],
): BearerChallenge {
  const scopes = [...new Set([...(upstream.accessTokens?.scopes ?? []), ...(rule.accessTokens?.scopes ?? [])])]
  const metadata = metadataUrl(upstream)
  return { error, scopes, metadata, stepUp: error === 'insufficient_user_authentication' ? rule.stepUp : undefined }
}
