import { setTimeout as wait } from 'node:timers/promises'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { isShared } from '../config/model/session.ts'
import { type ClaimPath, readClaim } from '../core/claims.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError, OperatorError, reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { randomId } from '../core/random.ts'
import { signInLifetimeMs } from '../core/sign-in-lifetime.ts'
import type { Authentication } from '../core/step-up.ts'
import { endAllAtProvider, type ProviderOutcome } from '../logout/end-at-provider.ts'
import { type Audit, type Cause, createAudit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import { createProvider } from '../provider/create-provider.ts'
import type { Provider } from '../provider/provider.ts'
import { type Ended, type SessionEndings } from '../session/live/endings.ts'
import { Sessions } from '../session/live/live-sessions.ts'
import { PendingEndings } from '../session/live/pending-endings.ts'
import { emailOf, rememberEmailEnding } from '../session/people/email-endings.ts'
import { PersonSessions } from '../session/people/person-sessions.ts'
import { type AccessKey, audienceOf, type StoredSession } from '../session/record/record.ts'
import { createKeyring } from '../session/record/sealed-record.ts'
import { RedisStore } from '../session/store/redis/redis-store.ts'
import type { SessionStore } from '../session/store/store.ts'
import {
  chunksOf,
  clientText,
  type FoundSession,
  keysOf,
  type ListOptions,
  personText,
  selected,
  type Selection,
} from './selection.ts'

/**
 * A session in a list. Of its claims, it has only `admin.page.show_claim`, and it has no token and
 * no cookie. Times in ms since the epoch.
 */
export interface SessionEntry {
  readonly key: SessionKey
  /** The name of the provider. Absent: there is only one. */
  readonly provider: string | undefined
  readonly sub: string
  /**
   * The value of `admin.page.show_claim` on one line, truncated after 80 characters. Absent: the
   * setting or the claim is absent.
   */
  readonly person: string | undefined
  readonly sid: string | undefined
  readonly origin: string | undefined
  /**
   * The browser of the sign-in, such as `Firefox 140 on Windows`, or the program with an access
   * key. Absent: it is not known.
   */
  readonly browser: string | undefined
  /**
   * The IP address of the client at the sign-in, or of the last use of an access key. Absent in
   * sessions of earlier versions.
   */
  readonly address: string | undefined
  /** When it was bound to a key of the device. Absent: it is not bound. */
  readonly bound_at: number | undefined
  readonly created_at: number
  /** Its last request. See `LastUse.at`. Absent: it was within the idle timeout. */
  readonly last_used_at: number | undefined
  readonly absolute_expires_at: number
}

/** What an administrator sees of one session, with the same limits. */
export interface SessionSummary extends SessionEntry {
  /** The access key whose record it is. Absent: it is the session of a browser. */
  readonly accessKey: Pick<AccessKey, 'name' | 'upstream'> | undefined
  readonly userinfo_read_at: number
  readonly authentication: Authentication | undefined
  readonly access_token_expires_at: number | undefined
  readonly hasRefreshToken: boolean
  readonly claimNames: readonly string[]
}

export interface EndingResult {
  /** How many sessions were ended here. */
  readonly ended: number
  /** How many sessions of the provider they belonged to, by outcome. */
  readonly atProvider: Readonly<Partial<Record<ProviderOutcome, number>>>
  /** Why the other sessions were not ended. Absent: all were ended. */
  readonly failure: string | undefined
}

/** The sessions of running gateways. */
export interface SessionsAdministration {
  /**
   * Newest first where the store can do so: in memory, and for one person or session.
   * @throws {OperatorError} when the store is unreachable
   */
  list(selection: Selection, options?: ListOptions): AsyncIterable<SessionSummary>
  /**
   * Counts sessions without reading them, so that sessions of other clients may be included.
   * @returns `undefined` when the deadline came first
   * @throws {OperatorError} when the store is unreachable
   */
  count(selection: Selection, deadline: number): Promise<number | undefined>
  /**
   * Ends sessions here, on all replicas, then at the provider when it is reachable.
   * @throws {OperatorError} when the store is unreachable: nothing has ended
   */
  end(selection: Selection, cause?: Cause): Promise<EndingResult>
}

/** The sessions of running gateways, from a process beside them. */
export interface Administration extends SessionsAdministration {
  close(): Promise<void>
}

export interface AdministrationParts {
  readonly config: Pick<GatewayConfig, 'upstreams' | 'file' | 'providers' | 'session' | 'admin' | 'externalUrl'>
  readonly store: SessionStore
  readonly sessions: Pick<Sessions, 'read' | 'lastUse'>
  readonly endings: Pick<SessionEndings, 'endOne' | 'endSid' | 'endSub'>
  readonly clock: Clock
  readonly providerOf: ProviderOf
  readonly audit: Audit
}

/** The provider of an audience. */
type ProviderOf = (audience: string) => Provider | undefined

/**
 * Connects to the store that the configuration names.
 * @throws {OperatorError} when only the gateway can read its sessions, or the store is unreachable
 */
export async function openAdministration(
  config: GatewayConfig,
  parts: { readonly log: Log; readonly clock: Clock },
): Promise<Administration> {
  const { log, clock } = parts
  const { store: storeConfig } = config.session
  if (!isShared(storeConfig)) {
    const place =
      storeConfig.kind === 'memory' ? 'the memory of the gateway' : `${storeConfig.file}, a file of the gateway`
    throw new OperatorError(
      `${config.file} keeps sessions in ${place}, which no other process can read: use the administration page (admin.page), or set session.store to Redis`,
    )
  }
  const audit = createAudit(log)
  const store = new RedisStore(storeConfig, { log, clock })
  const audiences = config.providers.map(audienceOf)
  const keyring = createKeyring(config.session.keys, log)
  const pending = new PendingEndings(log)
  const common = { store, keyring, audiences, clock, log, audit, pending }
  const sessions = new Sessions({ ...common, config: config.session })
  const { endings } = sessions
  const providers = config.providers.map((provider) => createProvider(provider, { clock, log }))
  const providerOf: ProviderOf = (audience) => providers[audiences.indexOf(audience)]
  const close = async () => {
    pending.clear()
    await Promise.allSettled([store.close(), ...providers.map((provider) => provider.close())])
  }
  try {
    await store.ping()
  } catch (error) {
    await close()
    throw forOperator(error)
  }
  return { ...administer({ config, store, sessions, endings, clock, providerOf, audit }), close }
}

/** Lists and ends the sessions of a client with the parts of a gateway. */
export function administer(parts: AdministrationParts): SessionsAdministration {
  const { config, store, sessions, endings, providerOf, audit } = parts
  const audiences = config.providers.map(audienceOf)
  const providerNameOf = (audience: string) =>
    audiences.length === 1 ? undefined : config.providers[audiences.indexOf(audience)]?.name
  const emailOfSession = ({ record, audience }: StoredSession) =>
    emailOf(record.claims, config.providers[audiences.indexOf(audience)]?.renamedClaims ?? {})
  const select = (selection: Selection, { deadline = Infinity, onRead = () => {} }: ListOptions = {}) =>
    selected(selection, { ...parts, audiences, deadline, onRead, providerNameOf, emailOf: emailOfSession })
  return {
    async *list(selection, options) {
      try {
        for await (const session of select(selection, options))
          yield { ...summary(session, config.admin?.page?.showClaim), provider: providerNameOf(session.audience) }
      } catch (error) {
        throw forOperator(error)
      }
    },
    count: async (selection, deadline) => {
      let count = 0
      try {
        for await (const keys of keysOf(selection, store, audiences)) {
          if (performance.now() > deadline) return undefined
          count += keys.length
        }
        return count
      } catch (error) {
        throw forOperator(error)
      }
    },
    end: async (selection, cause) => {
      const { store: storeConfig } = config.session
      if (isShared(storeConfig)) await waitForNotices(store, storeConfig.timeoutMs)
      const { ended, failure } =
        (await endPerson(selection, { ...parts, audiences }, cause)) ??
        (await endHere(await keysToEnd(select(selection)), endings, cause))
      const atProvider: Partial<Record<ProviderOutcome, number>> = {}
      for (const audience of audiences) {
        const provider = providerOf(audience)
        const records = ended.flatMap((one) => (one.audience === audience && one.record ? [one.record] : []))
        if (provider === undefined) continue
        const ofAudience = { audience, read: sessions.read.bind(sessions), lastUse: sessions.lastUse.bind(sessions) }
        const personSessions = new PersonSessions({ ...parts, sessions: ofAudience })
        const counts = await endAllAtProvider(records, { provider, audit, personSessions }, { cause })
        for (const [outcome, count] of counts) atProvider[outcome] = (atProvider[outcome] ?? 0) + count
      }
      return { ended: ended.length, atProvider, failure }
    },
  }
}

/**
 * Waits for the subscription to notices, because the confirmations of the replicas arrive there.
 */
async function waitForNotices(store: SessionStore, limitMs: number): Promise<void> {
  const end = performance.now() + limitMs
  while (store.receivesNotices?.() === false && performance.now() < end) await wait(10)
}

/** All keys are read first, because endings during the listing would disturb it. */
async function keysToEnd(sessions: AsyncIterable<FoundSession>): Promise<readonly SessionKey[]> {
  const keys: SessionKey[] = []
  try {
    for await (const { key } of sessions) keys.push(key)
  } catch (error) {
    throw forOperator(error)
  }
  return keys
}

interface EndedHere {
  readonly ended: readonly Ended[]
  readonly failure: string | undefined
}

/**
 * Ends the sessions of a `sub` or a `sid` with one order, as a Logout Token does: sign-ins that are
 * under way end too. For an e-mail address it only remembers the ending, for these sign-ins.
 * @returns `undefined` when the sessions of the selection have to be listed and ended
 */
async function endPerson(
  selection: Selection,
  { store, endings, clock, audiences }: AdministrationParts & { readonly audiences: readonly string[] },
  cause: Cause | undefined,
): Promise<EndedHere | undefined> {
  const { sub, sid, email, ...narrower } = selection
  if (Object.keys(narrower).length > 0 || [sub, sid, email].filter((one) => one !== undefined).length !== 1)
    return undefined
  const jti = `administrator ${randomId()}`
  const exp = Math.ceil((clock.now() + 2 * signInLifetimeMs) / 1000)
  const endIn = async (audience: string): Promise<readonly Ended[] | 'replayed'> => {
    const order = { audience, jti, exp }
    if (sub !== undefined) return endings.endSub(sub, order, 'administrator', cause)
    if (sid !== undefined) return endings.endSid(sid, order, 'administrator', cause)
    await rememberEmailEnding(email ?? '', audience, 'administrator', store)
    return []
  }
  const outcomes = await Promise.allSettled(audiences.map(endIn))
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed === undefined && email !== undefined) return undefined
  const ended = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' || outcome.value === 'replayed' ? [] : outcome.value,
  )
  return { ended: ended.filter(({ record }) => record !== undefined), failure: failed && reason(failed.reason) }
}

async function endHere(
  keys: readonly SessionKey[],
  endings: Pick<SessionEndings, 'endOne'>,
  cause: Cause | undefined,
): Promise<EndedHere> {
  const ended: Ended[] = []
  for (const some of chunksOf(keys)) {
    const outcomes = await Promise.allSettled(some.map((key) => endings.endOne(key, 'administrator', cause)))
    for (const outcome of outcomes)
      if (outcome.status === 'fulfilled') ended.push(...outcome.value.filter(({ record }) => record !== undefined))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) return { ended, failure: reason(failed.reason) }
  }
  return { ended, failure: undefined }
}

function summary(
  { key, record, last_used_at }: FoundSession,
  showClaim: ClaimPath | undefined,
): Omit<SessionSummary, 'provider'> {
  const { tokens, claims, device, signed_in_with, key: accessKey } = record
  return {
    key,
    sub: record.sub,
    person: showClaim && personText(readClaim(claims, showClaim)),
    sid: record.sid,
    origin: record.origin,
    accessKey: accessKey && { name: accessKey.name, upstream: accessKey.upstream },
    browser: clientText(record),
    address: accessKey?.used?.address ?? signed_in_with?.address,
    bound_at: device?.bound_at,
    created_at: record.created_at,
    last_used_at: accessKey?.used?.at ?? last_used_at,
    absolute_expires_at: record.absolute_expires_at,
    userinfo_read_at: record.userinfo_read_at,
    authentication: record.authentication,
    access_token_expires_at: tokens.access_token_expires_at,
    hasRefreshToken: tokens.refresh_token !== undefined,
    claimNames: Object.keys(claims).toSorted(),
  }
}

function forOperator(error: unknown): unknown {
  return error instanceof GatewayError ? new OperatorError(error.message, { cause: error }) : error
}
