import { isLoopback, parseHttpUrl } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import type { GlobalTokenRevocationConfig, SignalsConfig, TransmitterAuthorization } from '../model/provider.ts'
import type { ProviderSettings, ProviderSignalsSettings } from '../settings.ts'
import { valuesOf } from './build-context.ts'
import { readAuthorizationValue, readSecret, reportOtherCharacters } from './secrets.ts'

/** The security events of a provider. */
export function readSignals({ signals, issuer, client_id }: ProviderSettings, at: Setting): SignalsConfig | undefined {
  if (signals === undefined) return undefined
  const { transmitter, audience } = signals
  if (transmitter !== undefined) checkTransmitter(transmitter, at.below('transmitter'))
  if (signals.pollUrl !== undefined) checkUrl(signals.pollUrl, at.below('poll_url'), 'https://id.example.com/ssf/poll')
  if (Object.values(signals.events).every((action) => action === 'ignore'))
    at.below('events').warning('ignores all events, so signals has no effect', 'remove signals')
  const pushSecret = signals.pushSecret && readSecret(signals.pushSecret, at.below('push_secret'))
  reportOtherCharacters(pushSecret, at.below('push_secret'))
  return {
    ...signals,
    transmitter: transmitter ?? issuer ?? '',
    audience: audience === undefined ? [client_id ?? ''] : valuesOf(audience),
    pushSecret,
    authorization: readAuthorization(signals.authorization, at.below('authorization')),
    trustedSubjects: valuesOf(signals.trustedSubjects),
    events: { ...signals.events },
  }
}

/** Who may end all sessions of a person. */
export function readGlobalTokenRevocation(
  { globalTokenRevocation: settings, issuer }: ProviderSettings,
  at: Setting,
): GlobalTokenRevocationConfig | undefined {
  if (settings === undefined) return undefined
  const { issuer: own, jwksUri } = settings
  if (own !== undefined) checkUrl(own, at.below('issuer'), 'https://example.okta.com')
  if (jwksUri !== undefined) checkUrl(jwksUri, at.below('jwks_uri'), 'https://example.okta.com/oauth2/v1/keys')
  if (own !== undefined && own !== issuer && jwksUri === undefined && !at.below('jwks_uri').isReported)
    at.below('jwks_uri').missing('is missing: the keys of another issuer are not those of the provider')
  return { ...settings, issuer: own ?? issuer ?? '', trustedSubjects: valuesOf(settings.trustedSubjects) }
}

function checkTransmitter(text: string, at: Setting): void {
  checkUrl(text, at, 'https://id.example.com')
  if (text.includes('/.well-known/'))
    at.error('must be the issuer of the events', 'remove /.well-known/ssf-configuration')
}

function checkUrl(text: string, at: Setting, example: string): void {
  const url = at.parse(text, () => parseHttpUrl(text, example))
  if (url?.protocol === 'http:' && !isLoopback(url.hostname))
    at.error('must be https; plain http is possible on this machine only')
}

function readAuthorization(
  settings: ProviderSignalsSettings['authorization'],
  at: Setting,
): TransmitterAuthorization | undefined {
  if (settings === undefined) return undefined
  const { clientCredentials } = settings
  if (clientCredentials !== undefined) return { kind: 'client_credentials', scopes: valuesOf(clientCredentials.scopes) }
  const value = readAuthorizationValue(settings, at)
  return value === undefined ? undefined : { kind: 'value', value }
}
