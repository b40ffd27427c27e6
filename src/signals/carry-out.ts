import type { SignalAction } from '../config/model/provider.ts'
import { GatewayError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { SessionKey } from '../core/names.ts'
import { sha256 } from '../core/random.ts'
import { signInLifetimeMs } from '../core/sign-in-lifetime.ts'
import type { Cause } from '../observe/audit.ts'
import type { Instruments } from '../observe/instruments.ts'
import type { Provider } from '../provider/provider.ts'
import { maxAgeSeconds, type SecurityEventToken } from '../provider/security-event.ts'
import type { Attempt } from '../session/live/attempt.ts'
import { type EndOrder, type SessionEndings } from '../session/live/endings.ts'
import { changeSession, type SessionsOfAudience } from '../session/live/live-sessions.ts'
import { rememberEmailEnding, verifiedEmailOf } from '../session/people/email-endings.ts'
import { subTag, tagsOfOrder } from '../session/record/record.ts'
import type { DocumentStore } from '../session/store/documents.ts'
import type { SessionStore } from '../session/store/store.ts'
import type { Upkeep } from '../tokens/upkeep.ts'
import { eventName, readSubject, type SignalSubject, streamUpdatedEvent, verificationEvent } from './events.ts'
import type { StreamRecord } from './keep-stream.ts'

/** What the receiver of security events needs. */
export interface SignalParts extends Instruments {
  readonly provider: Pick<Provider, 'config' | 'verifySecurityEvent'>
  readonly store: DocumentStore & Pick<SessionStore, 'list' | 'listSid' | 'listSub' | 'takeOnce' | 'isMarked' | 'time'>
  readonly sessions: Pick<SessionsOfAudience, 'audience' | 'read' | 'replace'>
  readonly endings: Pick<SessionEndings, 'endSid' | 'endSub' | 'endOne' | 'carryOut'>
  readonly upkeep: Pick<Upkeep, 'reread'>
  readonly streamRecord: Pick<StreamRecord, 'noteVerified'>
}

/** How many sessions are changed at the same time. */
const atOnce = 8
/** How long the sessions of an e-mail address are searched, in ms. */
const searchMs = 20_000
/** As long as a token is accepted, whose `iat` may be ahead by at most five minutes. */
const rememberedMs = (maxAgeSeconds + 10 * 60) * 1000

/** The `state` of the event is not the last one (Shared Signals Framework 1.0 §8.1.4.1). */
export class InvalidState extends GatewayError {
  constructor() {
    super('ERR_SECURITY_EVENT_INVALID', 'the "state" of the verification event is not the one that was sent')
  }
}

/** What makes a request unique, and when it was made, in seconds since the epoch. */
type Order = Pick<SecurityEventToken, 'iss' | 'jti' | 'iat'>

/** An event that has an effect, and the sessions that it is about. */
interface Signal {
  readonly name: string
  readonly action: Exclude<SignalAction, 'ignore'>
  readonly subject: Exclude<SignalSubject, { kind: 'unknown' }>
}

/**
 * Carries out the events of a token. When it resolves, their effect holds on every replica.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` or `ERR_PROVIDER_UNAVAILABLE`: repeat it
 */
export async function carryOut(token: SecurityEventToken, parts: SignalParts, cause?: Cause): Promise<void> {
  for (const [type, event] of token.events) {
    const about = { iss: token.iss, jti: token.jti, event: (eventName(type) ?? lastSegment(type)).slice(0, 100) }
    if (type === verificationEvent || type === streamUpdatedEvent) await noteStreamEvent(type, event, parts)
    const signal = readSignal(type, event, token, parts)
    if (typeof signal === 'string') {
      parts.audit.record('signal.ignored', { ...about, reason: signal }, cause)
      continue
    }
    await obey(signal, about, token, parts, cause)
  }
}

/**
 * Ends the sessions of a subject, as a token asks for that is not a security event. When it
 * resolves, they have ended on every replica.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: repeat it
 */
export function endNow(
  subject: Signal['subject'],
  { iss, jti, iat }: Order,
  parts: SignalParts,
  cause?: Cause,
): Promise<void> {
  const name = 'global-token-revocation'
  // The token does not say who is meant, so that one token could come with several subjects.
  const order = { iss, jti: `${jti} ${JSON.stringify(subject)}`, iat }
  return obey({ name, action: 'end', subject }, { iss, jti, event: name }, order, parts, cause)
}

async function obey(
  signal: Signal,
  about: { readonly iss: string; readonly jti: string; readonly event: string },
  order: Order,
  parts: SignalParts,
  cause: Cause | undefined,
): Promise<void> {
  const { action, subject } = signal
  const named = {
    ...about,
    ...('sid' in subject && { sid: subject.sid }),
    ...('sub' in subject && { sub: subject.sub }),
  }
  const matched = await run(signal, order, parts, cause)
  if (matched === 'replayed') parts.audit.record('signal.replayed', named, cause)
  else parts.audit.record('signal.obeyed', { ...named, action, matched }, cause)
}

/**
 * Verification events without `state` were not asked for (Shared Signals Framework 1.0 §8.1.4.1).
 * @throws {InvalidState} when the `state` is not the one that was sent
 */
async function noteStreamEvent(type: string, { state, status }: JsonObject, parts: SignalParts): Promise<void> {
  const { streamRecord, clock, log } = parts
  const text = (value: unknown) => (typeof value === 'string' ? value.slice(0, 200) : undefined)
  if (type === verificationEvent && state !== undefined) {
    if (typeof state !== 'string' || !(await streamRecord.noteVerified(state, clock.now()))) throw new InvalidState()
    log.info('signals.verified')
  } else log.info('signals.stream', { event: lastSegment(type), status: text(status) })
}

/** What an event asks for, or why it has no effect. */
function readSignal(type: string, event: JsonObject, token: SecurityEventToken, parts: SignalParts): Signal | string {
  if (type === verificationEvent || type === streamUpdatedEvent) return 'it is about the stream'
  const { issuer, signals } = parts.provider.config
  const name = eventName(type)
  const action = name === undefined ? undefined : signals?.events[name]
  if (name === undefined || action === undefined) return 'events of this type have no effect'
  if (action === 'ignore') return 'signals.events says so'
  if (hasImproved(name, event)) return 'the state has improved'
  // Earlier versions of the specification have the subject in the event.
  const own = isObject(event['subject']) ? event['subject'] : undefined
  const subject = readSubject(token.sub_id ?? own, { issuers: [issuer], trusted: signals?.trustedSubjects ?? [] })
  return subject.kind === 'unknown' ? subject.why : { name, action, subject }
}

/** Whether an event says that a person or a device is more trustworthy than before. */
function hasImproved(name: string, event: JsonObject): boolean {
  if (name === 'assurance-level-change') return event['change_direction'] === 'increase'
  return name === 'device-compliance-change' && event['current_status'] === 'compliant'
}

/** @returns how many sessions the event was about */
async function run(
  signal: Signal,
  token: Order,
  parts: SignalParts,
  cause: Cause | undefined,
): Promise<number | 'replayed'> {
  const { provider, store, sessions } = parts
  const { audience } = sessions
  // One token may have several events, each of which is carried out once.
  const order = {
    audience,
    jti: `signal ${token.iss} ${token.jti} ${signal.name}`,
    issued_at: token.iat * 1000,
    exp: token.iat + maxAgeSeconds,
  }
  const once = sha256('signal', audience, order.jti)
  // Sign-ins that were under way then are over.
  const isLate = token.iat * 1000 < parts.clock.now() - signInLifetimeMs - provider.config.clockToleranceMs
  // Last, so that the transmitter can repeat an event that could not be carried out.
  const marked = async (matched: number | 'replayed') =>
    matched !== 'replayed' && (await store.takeOnce(once, rememberedMs)) ? matched : 'replayed'
  const ended = isLate ? undefined : await end(signal, order, parts, cause)
  if (ended !== undefined) return marked(ended)
  const until = isLate ? token.iat * 1000 : undefined
  return parts.endings.carryOut(once, async (attempt) =>
    marked(await change(signal, { once, attempt, until }, parts, cause)),
  )
}

/** @returns `undefined` when the event does not end the sessions of a `sid` or a `sub` */
async function end(
  { action, subject }: Signal,
  order: EndOrder,
  { endings }: SignalParts,
  cause: Cause | undefined,
): Promise<number | 'replayed' | undefined> {
  if (action !== 'end' || subject.kind === 'email') return undefined
  const ended =
    subject.kind === 'sid'
      ? await endings.endSid(subject.sid, { ...order, sub: subject.sub }, 'signal', cause)
      : await endings.endSub(subject.sub, order, 'signal', cause)
  return ended === 'replayed' ? ended : ended.length
}

/** @param until when the event happened, if it is late: sessions that began later go on */
async function change(
  { action, subject }: Signal,
  { once, attempt, until }: { readonly once: string; readonly attempt: Attempt; readonly until: number | undefined },
  parts: SignalParts,
  cause: Cause | undefined,
): Promise<number | 'replayed'> {
  // A replay must not change the session of a later sign-in.
  if (await parts.store.isMarked(once)) return 'replayed'
  if (subject.kind === 'email' && action === 'end')
    await rememberEmailEnding(
      ...([subject.email, parts.sessions.audience, 'signal', parts.store] as const),
      await attempt.storeTime(parts.store),
    )
  const isRepeatedEnd = action === 'end' && attempt.hasFailed
  const found = await keysOf(subject, parts, isRepeatedEnd ? await attempt.storeTime(parts.store) : undefined)
  const keys = until === undefined ? found : await begunUntil(until, found, parts)
  const changeOne = { end: endOne, reread_claims: rereadClaims, step_up: forgetAuthentication }[action]
  await forEach(keys, (key) => changeOne(key, parts, cause))
  return keys.length
}

/** The sessions that began before an event, with a tolerance for the clock of the transmitter. */
async function begunUntil(
  until: number,
  keys: readonly SessionKey[],
  { sessions, provider }: SignalParts,
): Promise<readonly SessionKey[]> {
  const begun: SessionKey[] = []
  await forEach(keys, async (key) => {
    const session = await sessions.read(key)
    if (session !== undefined && session.record.created_at <= until + provider.config.clockToleranceMs) begun.push(key)
  })
  return begun
}

async function endOne(key: SessionKey, { endings }: SignalParts, cause: Cause | undefined): Promise<void> {
  await endings.endOne(key, 'signal', cause)
}

async function rereadClaims(key: SessionKey, { sessions, upkeep }: SignalParts): Promise<void> {
  const session = await sessions.read(key)
  if (session !== undefined) await upkeep.reread(session)
}

/** A rule with `step_up` then needs a new sign-in. */
async function forgetAuthentication(key: SessionKey, { sessions }: SignalParts): Promise<void> {
  await changeSession(key, sessions, (record) => ({ ...record, authentication: {} }))
}

/** @param begun_until sessions by e-mail address whose sign-in began later are left out */
async function keysOf(
  subject: Signal['subject'],
  parts: SignalParts,
  begun_until?: number,
): Promise<readonly SessionKey[]> {
  const { store, sessions } = parts
  if (subject.kind === 'sid') {
    const tags = tagsOfOrder(sessions.audience, subject.sid, subject.sub)
    return (await Promise.all(tags.map((tag) => store.listSid(tag)))).flat()
  }
  if (subject.kind === 'sub') return store.listSub(subTag(sessions.audience, subject.sub))
  return keysOfEmail(subject.email, parts, begun_until)
}

/** Sessions have no index of e-mail addresses, so this reads all of them. */
async function keysOfEmail(
  email: string,
  { provider, store, sessions }: SignalParts,
  begun_until = Infinity,
): Promise<readonly SessionKey[]> {
  const deadline = performance.now() + searchMs
  const found: SessionKey[] = []
  for await (const keys of store.list()) {
    if (performance.now() > deadline)
      throw new GatewayError(
        'ERR_STORE_UNAVAILABLE',
        `the sessions of an e-mail address were not found within ${searchMs} ms`,
      )
    await forEach(keys, async (key) => {
      const { record, begun_at = 0 } = (await sessions.read(key)) ?? {}
      if (record === undefined || begun_at > begun_until) return
      const own = verifiedEmailOf(record.claims, provider.config.renamedClaims)
      // In any letter case: an event never gives a session more than it has.
      if (own?.toLowerCase() === email.toLowerCase()) found.push(key)
    })
  }
  return found
}

async function forEach<T>(values: readonly T[], work: (value: T) => Promise<void>): Promise<void> {
  const left = [...values]
  const workers = Array.from({ length: Math.min(atOnce, left.length) }, async () => {
    for (let value = left.shift(); value !== undefined; value = left.shift()) await work(value)
  })
  await Promise.all(workers)
}

function lastSegment(type: string): string {
  return type.slice(type.lastIndexOf('/') + 1)
}
