import type { Setting } from '../document/report.ts'
import { readAuthorizationValue, reportOtherCharacters } from '../document/secrets.ts'
import type { GlobalTokenRevocationConfig, SignalsConfig, TransmitterAuthorization } from '../model/provider.ts'
import type { ProviderSettings, ProviderSignalsSettings } from '../settings.ts'

/** The security events of a provider. */
export function readSignals({ signals, issuer, client_id }: ProviderSettings, at: Setting): SignalsConfig | undefined {
  if (signals === undefined) return undefined
  const { transmitter } = signals
  if (transmitter?.includes('/.well-known/') === true)
    at.below('transmitter').error('must be the issuer of the events', 'remove /.well-known/ssf-configuration')
  if (Object.values(signals.events).every((action) => action === 'ignore'))
    at.below('events').warning('ignores all events, so signals has no effect', 'remove signals')
  reportOtherCharacters(signals.pushSecret, at.below('push_secret'))
  return {
    ...signals,
    transmitter: transmitter ?? issuer ?? '',
    audience: signals.audience ?? [client_id ?? ''],
    events: { ...signals.events },
    authorization: readAuthorization(signals.authorization, at.below('authorization')),
  }
}

/** Who may end all sessions of a person. */
export function readGlobalTokenRevocation(
  { globalTokenRevocation: settings, issuer }: ProviderSettings,
  at: Setting,
): GlobalTokenRevocationConfig | undefined {
  if (settings === undefined) return undefined
  const { issuer: own, jwksUri } = settings
  if (at.below('issuer').isSet && own !== issuer && jwksUri === undefined && !at.below('jwks_uri').isReported)
    at.below('jwks_uri').missing('is missing: the keys of another issuer are not those of the provider')
  return { ...settings, issuer: own ?? issuer ?? '' }
}

function readAuthorization(
  settings: ProviderSignalsSettings['authorization'],
  at: Setting,
): TransmitterAuthorization | undefined {
  if (settings === undefined) return undefined
  const { clientCredentials } = settings
  if (clientCredentials !== undefined) return { kind: 'client_credentials', scopes: clientCredentials.scopes }
  const value = readAuthorizationValue(settings, at)
  return value === undefined ? undefined : { kind: 'value', value }
}
