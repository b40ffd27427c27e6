import { isLoopback, parseHttpUrl } from '../addresses.ts'
import { below } from '../document/report.ts'
import type { SignalsConfig } from '../model.ts'
import type { ProviderSettings } from '../settings.ts'
import { type BuildContext, present } from './build-context.ts'
import { readSecret } from './secrets.ts'

/** The security events of a provider. */
export function readSignals(
  { signals, issuer, client_id }: ProviderSettings,
  at: string,
  { env, report }: BuildContext,
): SignalsConfig | undefined {
  if (signals === undefined) return undefined
  const { transmitter, audience, signing_alg, push_secret, trusted_subjects, events } = signals
  if (transmitter !== undefined) {
    const url = report.parse(below(at, 'transmitter'), undefined, () =>
      parseHttpUrl(transmitter, 'https://id.example.com'),
    )
    if (url?.protocol === 'http:' && !isLoopback(url.hostname))
      report.error(below(at, 'transmitter'), 'must be https; plain http is possible on this machine only')
  }
  const pushSecret = push_secret && readSecret(push_secret, below(at, 'push_secret'), env, report)
  // Other characters arrive in another encoding (RFC 9110 §5.5), so no request would match.
  if (pushSecret !== undefined && !/^[\x20-\x7e]+$/.test(pushSecret))
    report.error(
      below(at, 'push_secret'),
      'has characters that are not ASCII',
      'choose another secret at the transmitter',
    )
  return {
    transmitter: transmitter ?? issuer ?? '',
    audience: audience === undefined ? [client_id ?? ''] : present(audience).map(([, value]) => value),
    signingAlg: signing_alg,
    pushSecret,
    trustedSubjects: present(trusted_subjects).map(([, format]) => format),
    events: { ...events },
  }
}
