import { isLoopback, parseHttpUrl } from '../addresses.ts'
import { below, type Report } from '../document/report.ts'
import type { SignalsConfig, TransmitterAuthorization } from '../model/provider.ts'
import type { ProviderSettings, ProviderSignalsSettings } from '../settings.ts'
import { type BuildContext, valuesOf } from './build-context.ts'
import { readSecret } from './secrets.ts'

/** The security events of a provider. */
export function readSignals(
  { signals, issuer, client_id }: ProviderSettings,
  at: string,
  context: BuildContext,
): SignalsConfig | undefined {
  if (signals === undefined) return undefined
  const { env, report } = context
  const { transmitter, audience } = signals
  if (transmitter !== undefined) checkTransmitter(transmitter, below(at, 'transmitter'), report)
  if (signals.pollUrl !== undefined)
    checkUrl(signals.pollUrl, below(at, 'poll_url'), 'https://id.example.com/ssf/poll', report)
  reportMismatches(signals, at, report)
  if (Object.values(signals.events).every((action) => action === 'ignore'))
    report.warning(below(at, 'events'), 'ignores all events, so signals has no effect', 'remove signals')
  const pushSecret = signals.pushSecret && readSecret(signals.pushSecret, below(at, 'push_secret'), env, report)
  reportOtherCharacters(pushSecret, below(at, 'push_secret'), report)
  return {
    ...signals,
    transmitter: transmitter ?? issuer ?? '',
    audience: audience === undefined ? [client_id ?? ''] : valuesOf(audience),
    pushSecret,
    authorization: readAuthorization(signals.authorization, below(at, 'authorization'), context),
    trustedSubjects: valuesOf(signals.trustedSubjects),
    events: { ...signals.events },
  }
}

function checkTransmitter(text: string, at: string, report: Report): void {
  checkUrl(text, at, 'https://id.example.com', report)
  if (text.includes('/.well-known/'))
    report.error(at, 'must be the issuer of the events', 'remove /.well-known/ssf-configuration')
}

function checkUrl(text: string, at: string, example: string, report: Report): void {
  const url = report.parse(at, undefined, () => parseHttpUrl(text, example))
  if (url?.protocol === 'http:' && !isLoopback(url.hostname))
    report.error(at, 'must be https; plain http is possible on this machine only')
}

/** Settings that need each other, and settings without an effect. */
function reportMismatches(signals: ProviderSignalsSettings, at: string, report: Report): void {
  const { delivery, stream, pollUrl, pushSecret, authorization } = signals
  // A mistyped value says nothing about the other settings.
  if (!report.isValid(below(at, 'delivery'), below(at, 'stream'))) return
  const [isPoll, isManaged] = [delivery === 'poll', stream === 'managed']
  const why = isManaged ? 'stream is managed' : 'delivery is poll'
  const noEffect = (name: string, reason: string) =>
    report.errorAtKey(below(at, name), `has no effect: ${reason}`, 'remove it')
  if (authorization === undefined && (isPoll || isManaged) && !report.isReported(below(at, 'authorization')))
    report.missing(
      below(at, 'authorization'),
      `is missing: ${why}, so the gateway sends requests to the transmitter`,
      'for example authorization: { client_credentials: { scopes: [ssf.manage, ssf.read] } }',
    )
  if (authorization !== undefined && !isPoll && !isManaged)
    noEffect('authorization', 'the stream exists and its delivery is push, so the gateway sends no requests')
  if (pollUrl === undefined && isPoll && !isManaged)
    report.missing(
      below(at, 'poll_url'),
      'is missing: delivery is poll, and the stream is not managed',
      'write the endpoint_url of the stream, or stream: managed',
    )
  if (pollUrl !== undefined && !isPoll) noEffect('poll_url', 'delivery is push')
  if (pollUrl !== undefined && isPoll && isManaged) noEffect('poll_url', 'the managed stream says where it is polled')
  if (pushSecret !== undefined && isPoll) noEffect('push_secret', 'delivery is poll')
}

function readAuthorization(
  settings: ProviderSignalsSettings['authorization'],
  at: string,
  { env, report }: BuildContext,
): TransmitterAuthorization | undefined {
  if (settings === undefined) return undefined
  const { clientCredentials } = settings
  if (clientCredentials !== undefined) return { kind: 'client_credentials', scopes: valuesOf(clientCredentials.scopes) }
  const value = readSecret(settings, at, env, report)
  reportOtherCharacters(value, at, report)
  // RFC 9110 §11.4: a scheme and the credentials.
  if (value !== undefined && !/^\S+ +\S/.test(value))
    report.error(at, 'has no scheme', 'write the complete value of Authorization, such as Bearer and the token')
  return value === undefined ? undefined : { kind: 'value', value }
}

/** Other characters arrive in another encoding (RFC 9110 §5.5), so no request would match. */
function reportOtherCharacters(secret: string | undefined, at: string, report: Report): void {
  if (secret !== undefined && !/^[\x20-\x7e]+$/.test(secret))
    report.error(at, 'has characters that are not ASCII', 'choose another secret at the transmitter')
}
