import type { SignalAction } from '../config/model/provider.ts'

const caep = 'https://schemas.openid.net/secevent/caep/event-type/'
const risc = 'https://schemas.openid.net/secevent/risc/event-type/'
const ssf = 'https://schemas.openid.net/secevent/ssf/event-type/'

/** The types of CAEP 1.0 and RISC 1.0 that have an effect. Their last segment is their name. */
const types = [
  ...['session-revoked', 'token-claims-change', 'credential-change'].map((name) => caep + name),
  ...['assurance-level-change', 'device-compliance-change'].map((name) => caep + name),
  ...['account-disabled', 'account-purged', 'account-credential-change-required'].map((name) => risc + name),
]
const names = new Map(types.map((type) => [type, type.slice(type.lastIndexOf('/') + 1)]))

/**
 * With this event, a transmitter shows that a stream works (Shared Signals Framework 1.0 §8.1.4).
 */
export const verificationEvent = `${ssf}verification`
/** With this event, a transmitter says that it has paused or stopped the stream (§8.1.5). */
export const streamUpdatedEvent = `${ssf}stream-updated`

/** The name of a type in the configuration; `undefined` for one that has no effect. */
export function eventName(type: string): string | undefined {
  return names.get(type)
}

/** The types that have an effect with these actions, for the stream of the gateway. */
export function requestedTypes(actions: Readonly<Record<string, SignalAction>>): readonly string[] {
  return types.filter((type) => (actions[names.get(type) ?? ''] ?? 'ignore') !== 'ignore')
}
