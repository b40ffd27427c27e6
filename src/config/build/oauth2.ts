import type { Setting } from '../document/report.ts'
import type { ProviderConfig } from '../model/provider.ts'
import type { ProviderSettings } from '../settings.ts'

/** Metadata that need the keys of the provider, or an ID Token. */
const metadataOfOpenid = ['jwks_uri', 'end_session_endpoint', 'id_token_signing_alg_values_supported'] as const
/** Parameters whose effect only an ID Token shows. */
const paramsOfOpenid = ['max_age', 'acr_values', 'claims', 'nonce'] as const

/** The settings of a provider without ID Tokens, and what an OpenID Provider needs instead. */
export function readOauth2(settings: ProviderSettings, at: Setting): ProviderConfig['oauth2'] {
  const { kind, metadata, scopes, subject } = settings
  const metadataAt = at.below('metadata')
  if (at.below('kind').isReported) return undefined
  if (kind === 'openid') {
    if (metadata !== undefined && metadata.jwks_uri === undefined && !metadataAt.below('jwks_uri').isSet)
      metadataAt.below('jwks_uri').missing('is missing', 'for example jwks_uri: https://id.example.com/jwks.json')
    if (scopes !== undefined && at.below('scopes').isValid && !scopes.includes('openid'))
      at.below('scopes').error('must contain "openid"', `write scopes: [${['openid', ...scopes].join(', ')}]`)
    return undefined
  }
  const refuse = (place: Setting) => {
    if (place.isSet)
      place.errorAtKey('is not possible with kind: oauth2, because the provider issues no ID Tokens', 'remove it')
  }
  for (const name of metadataOfOpenid) refuse(metadataAt.below(name))
  for (const name of paramsOfOpenid) refuse(at.below('authorization_params', name))
  if (scopes?.includes('openid') === true) at.below('scopes').error('must not contain openid with kind: oauth2')
  if (
    metadata !== undefined &&
    metadata.userinfo_endpoint === undefined &&
    !metadataAt.below('userinfo_endpoint').isSet
  )
    metadataAt
      .below('userinfo_endpoint')
      .missing('is missing: its response says who signs in', 'for example https://api.github.com/user')
  return { subject: subject ?? ['sub'] }
}
