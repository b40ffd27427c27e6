import type { SignalAction } from '../config/model/provider.ts'
import { isObject, type JsonObject } from '../core/json.ts'

/** The sessions that an event is about. */
export type SignalSubject =
  /** `sub`: that of the user beside the session, if it is known. */
  | { readonly kind: 'sid'; readonly sid: string; readonly sub?: string }
  | { readonly kind: 'sub'; readonly sub: string }
  /** A verified e-mail address; its domain is in lower case. */
  | { readonly kind: 'email'; readonly email: string }
  /** The subject names people or things of another kind, or of another issuer. */
  | { readonly kind: 'unknown'; readonly why: string }

export interface SubjectOptions {
  /** Who may name a person by a `sub` (`iss_sub`). */
  readonly issuers: readonly string[]
  /** Which formats name people although another party could have chosen them. */
  readonly trusted: readonly ('email' | 'account')[]
}

/** The longest identifier, in characters. */
const maxLength = 1_020

/**
 * Reads a subject identifier (RFC 9493 §3, Shared Signals Framework 1.0 §3). A complex subject is
 * about its session, and those of its user that have no `sid`; or about all sessions of its user.
 */
export function readSubject(subject: JsonObject | undefined, options: SubjectOptions): SignalSubject {
  if (subject === undefined) return unknown('the event has no subject')
  const format = text(subject['format']) ?? (isObject(subject['user']) ? 'complex' : undefined)
  switch (format) {
    case 'complex':
      return readComplex(subject, options)
    case 'iss_sub': {
      const [iss, sub] = [text(subject['iss']), text(subject['sub'])]
      if (iss === undefined || sub === undefined) return unknown('an iss_sub subject without iss or sub')
      return options.issuers.includes(iss) ? { kind: 'sub', sub } : unknown('the subject is a person of another issuer')
    }
    case 'opaque': {
      const id = text(subject['id'])
      return id === undefined ? unknown('an opaque subject without id') : { kind: 'sub', sub: id }
    }
    case 'email':
      return readEmail(text(subject['email']), 'email', options)
    case 'account':
      return readEmail(/^acct:(.+)$/.exec(text(subject['uri']) ?? '')?.[1], 'account', options)
    default:
      return unknown(`subjects of the format ${String(format).slice(0, 40)} are not known`)
  }
}

function readComplex(subject: JsonObject, options: SubjectOptions): SignalSubject {
  const { session, user } = subject
  const person = isObject(user) ? readSubject(user, options) : undefined
  // A session of an unknown shape must not become all sessions of the user.
  if (session !== undefined) {
    const sid = isObject(session) ? text(session['id']) : undefined
    if (sid === undefined) return unknown('the session of the subject has no id')
    return { kind: 'sid', sid, ...(person?.kind === 'sub' && { sub: person.sub }) }
  }
  return person ?? unknown('the subject has neither a session nor a user')
}

function readEmail(
  address: string | undefined,
  format: SubjectOptions['trusted'][number],
  { trusted }: SubjectOptions,
): SignalSubject {
  if (!trusted.includes(format)) return unknown(`subjects of the format ${format} are not in trusted_subjects`)
  const [, local, domain] = /^([^@\s]+)@([^@\s]+)$/.exec(address ?? '') ?? []
  return local === undefined || domain === undefined
    ? unknown(`the ${format} of the subject is not an address`)
    : { kind: 'email', email: `${local}@${domain.toLowerCase()}` }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= maxLength ? value : undefined
}

function unknown(why: string): SignalSubject {
  return { kind: 'unknown', why }
}

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

/** It shows that a stream works (Shared Signals Framework 1.0 §8.1.4). */
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
