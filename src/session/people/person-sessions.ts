import type { MaxPerPersonConfig } from '../../config/model/session.ts'
import type { AccessKeysConfig, UpstreamConfig } from '../../config/model/upstream.ts'
import type { SessionId, SessionKey } from '../../core/names.ts'
import { sha256 } from '../../core/random.ts'
import type { KeyList, ListedKey, ListedSession, SessionList } from '../../core/session-lists.ts'
import { browserOf } from '../../http/user-agent.ts'
import type { Cause } from '../../observe/audit.ts'
import { type Ended, markEnding, type SessionEndings } from '../live/endings.ts'
import { type LeaseStore, retryUntil, underLease } from '../live/lease.ts'
import type { SessionsOfAudience } from '../live/live-sessions.ts'
import { accessKeyTag, sessionKey, type SessionRecord, type StoredSession, subTag, tagOf } from '../record/record.ts'
import type { SessionStore } from '../store/store.ts'

const readsAtOnce = 50
/** How long a sign-in waits for another one of the same person, in ms. */
const turnWaitMs = 3_000

export interface PersonSessionsParts {
  readonly sessions: Pick<SessionsOfAudience, 'audience' | 'read' | 'lastUse'>
  readonly store: LeaseStore & Pick<SessionStore, 'listSid' | 'listSub' | 'takeOnce'>
  readonly endings: Pick<SessionEndings, 'endOne'>
  /** Absent: a person may have any number of sessions. */
  readonly max?: MaxPerPersonConfig | undefined
}

/** The most index entries that a list of sessions looks at, and the most sessions that it has. */
const maxEntries = 200
const maxListed = 50

/** An upstream for which a person may make a key. */
export interface KeyUpstream extends Pick<UpstreamConfig, 'name'> {
  readonly keys: AccessKeysConfig
  /** Where programs find it. */
  readonly address: string
}

/** The upstreams for which a person of a provider may make keys, at a client address. */
export type KeysFor = (
  person: Pick<SessionRecord, 'claims'>,
  provider: string,
  client: string,
) => readonly KeyUpstream[]

/** Whose sessions a browser sees. */
export interface Viewer {
  readonly sub: string
  /** The session of the browser at the provider. Absent: it is not known. */
  readonly sid?: string | undefined
  /** Known only to the browser: its session id, or the proof of its refused sign-in. */
  readonly secret: string
  /** The session of the browser. Absent: it has none. */
  readonly current?: SessionKey | undefined
}

/** A sign-in whose session may exceed the maximum. */
export interface CountedSignIn {
  readonly sub: string
  /** The sessions that this one replaces, because the browser has them. They do not count. */
  readonly replaced: readonly SessionKey[]
  /** Creates the session; `undefined` when a Logout Token for it has arrived. */
  readonly create: () => Promise<SessionId | undefined>
  /** The session is that of a key for this upstream. A person may have `count` of them. */
  readonly key?: { readonly upstream: string; readonly count: number }
  readonly cause?: Cause | undefined
}

export type CountedSession =
  | { readonly kind: 'created'; readonly id: SessionId }
  /** A Logout Token, or a later sign-in of the person, has ended the session. */
  | { readonly kind: 'ended' }
  /** The person has too many sessions, so there is no new one. */
  | { readonly kind: 'refused' }

/** The sessions of each person at one client of a provider, and how many there may be. */
export class PersonSessions {
  readonly #parts: PersonSessionsParts

  constructor(parts: PersonSessionsParts) {
    this.#parts = parts
  }

  /**
   * The keys of the sessions of a person, those that end last first, without access keys. Some may
   * have expired.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, here and below
   */
  async keys(sub: string): Promise<readonly SessionKey[]> {
    const { sessions, store } = this.#parts
    const ofKeys = accessKeyTag(sessions.audience, sub)
    return (await store.listSub(subTag(sessions.audience, sub))).filter((key) => tagOf(key) !== ofKeys)
  }

  /** The records of the access keys of a person, the latest first. */
  async accessKeys(sub: string): Promise<readonly StoredSession[]> {
    const { sessions, store } = this.#parts
    return this.live(await store.listSid(accessKeyTag(sessions.audience, sub)))
  }

  /** Whether a person has a live access key. */
  async hasKeys(sub: string): Promise<boolean> {
    return (await this.accessKeys(sub)).length > 0
  }

  /** Whether a person has a live session or access key. */
  async hasAny(sub: string): Promise<boolean> {
    const { sessions, store } = this.#parts
    return (await this.live(await store.listSub(subTag(sessions.audience, sub)))).length > 0
  }

  async listKeys({ sub, secret }: Viewer): Promise<KeyList> {
    const keys = (await this.accessKeys(sub)).flatMap(({ key: at, record }): ListedKey[] => {
      const { key, created_at: madeAt, absolute_expires_at: endsAt } = record
      return key === undefined ? [] : [{ ...key, madeAt, endsAt, token: endingToken(secret, at) }]
    })
    return { keys, allToken: endingToken(secret, 'all keys'), newToken: endingToken(secret, 'a new key') }
  }

  /** Whether a form for a new key is from the page of this browser. */
  isForNewKey({ secret }: Viewer, token: string): boolean {
    return token === endingToken(secret, 'a new key')
  }

  /** The live sessions among these keys, the latest sign-in first. */
  async live(keys: readonly SessionKey[]): Promise<readonly StoredSession[]> {
    const found: StoredSession[] = []
    // An index also names sessions that have expired by the idle timeout.
    for (let at = 0; at < keys.length; at += readsAtOnce) {
      const read = await Promise.all(keys.slice(at, at + readsAtOnce).map((key) => this.#parts.sessions.read(key)))
      found.push(...read.filter((session) => session !== undefined))
    }
    return found.sort(latestFirst)
  }

  /** The sessions of a person, the one of the browser first, then the latest sign-in. */
  async list({ sub, secret, current }: Viewer): Promise<SessionList> {
    const keys = await this.keys(sub)
    const examined = keys.slice(0, maxEntries)
    const live = await this.live(
      current === undefined || examined.includes(current) ? examined : [...examined, current],
    )
    const own = live.filter(({ key }) => key === current)
    const shown = [...own, ...live.filter(({ key }) => key !== current)].slice(0, maxListed)
    const sessions = await Promise.all(
      shown.map(async (session): Promise<ListedSession> => {
        const { key, record } = session
        const { signed_in_with, created_at, device } = record
        return {
          token: endingToken(secret, key),
          isCurrent: key === current,
          browser: browserOf(signed_in_with?.user_agent),
          address: signed_in_with?.address,
          signedInAt: created_at,
          lastUsedAt: (await this.#parts.sessions.lastUse(session))?.at,
          isBound: device !== undefined,
        }
      }),
    )
    const hasMore = keys.length > examined.length || live.length > shown.length
    return { sessions, othersToken: endingToken(secret, 'others'), hasMore }
  }

  /** Ends the sessions that a token of a form names: none if it is of another person or browser. */
  async end({ sub, secret, current }: Viewer, token: string, cause?: Cause): Promise<readonly Ended[]> {
    const others = (await this.keys(sub)).filter((key) => key !== current)
    const ofKeys = (await this.accessKeys(sub)).map(({ key }) => key)
    const isNamed = (key: SessionKey) => endingToken(secret, key) === token
    const isForAll = token === endingToken(secret, 'others')
    const isForKeys = token === endingToken(secret, 'all keys')
    const meant = isForAll ? others : isForKeys ? ofKeys : [...others, ...ofKeys].filter(isNamed)
    const ended: Ended[] = []
    for (let at = 0; at < meant.length; at += readsAtOnce) {
      const some = meant.slice(at, at + readsAtOnce)
      ended.push(...(await Promise.all(some.map((key) => this.#parts.endings.endOne(key, 'person', cause)))).flat())
    }
    return ended
  }

  /** Creates a session and keeps to the maximum. It ends again when the store fails meanwhile. */
  async create(signIn: CountedSignIn): Promise<CountedSession> {
    const { key } = signIn
    const max = key === undefined ? this.#parts.max : ({ count: key.count, whenExceeded: 'refuse' } as const)
    if (max === undefined) {
      const id = await signIn.create()
      return id === undefined ? { kind: 'ended' } : { kind: 'created', id }
    }
    return max.whenExceeded === 'end_oldest'
      ? this.#createThen(signIn, (key) => this.#endOldest(key, max.count, signIn))
      : this.#inTurn(signIn.sub, () => this.#createIfFree(max.count, signIn))
  }

  /**
   * Counts afterwards: of several sign-ins, the last one to be stored sees all others. All of them
   * use the same order, so the same sessions end.
   */
  async #endOldest(created: SessionKey, count: number, signIn: CountedSignIn): Promise<CountedSession['kind']> {
    const beyond = (await this.#counted(signIn)).slice(count).map(({ key }) => key)
    await Promise.all(beyond.map((key) => this.#endByMaximum(key, signIn.cause)))
    return beyond.includes(created) ? 'ended' : 'created'
  }

  /**
   * Counts before, so that a refused sign-in leaves nothing, and again afterwards, because another
   * sign-in may not have waited. Then the session is one too many, whichever is older.
   */
  async #createIfFree(count: number, signIn: CountedSignIn): Promise<CountedSession> {
    if ((await this.#counted(signIn)).length >= count) return { kind: 'refused' }
    return this.#createThen(signIn, async (key) => {
      if ((await this.#counted(signIn)).length <= count) return 'created'
      await this.#parts.endings.endOne(key, 'max_per_person', signIn.cause)
      return 'refused'
    })
  }

  async #createThen(
    signIn: CountedSignIn,
    decide: (key: SessionKey) => Promise<CountedSession['kind']>,
  ): Promise<CountedSession> {
    const id = await signIn.create()
    if (id === undefined) return { kind: 'ended' }
    const key = sessionKey(id)
    try {
      const kind = await decide(key)
      return kind === 'created' ? { kind, id } : { kind }
    } catch (error) {
      // If this fails too, the ending is repeated. The browser does not get the cookie.
      await this.#parts.endings.endOne(key, 'max_per_person', signIn.cause).catch(() => {})
      throw error
    }
  }

  async #counted({ sub, replaced, key: counted }: CountedSignIn): Promise<readonly StoredSession[]> {
    if (counted !== undefined)
      return (await this.accessKeys(sub)).filter(({ record }) => record.key?.upstream === counted.upstream)
    const keys = await this.keys(sub)
    return this.live(keys.filter((key) => !replaced.includes(key)))
  }

  async #endByMaximum(key: SessionKey, cause: Cause | undefined): Promise<void> {
    await markEnding(key, 'elsewhere', this.#parts.store)
    await this.#parts.endings.endOne(key, 'max_per_person', cause)
  }

  /**
   * Lets the sign-ins of a person take turns, over all replicas: otherwise each of two could count
   * the other, and both would be refused. One that has waited too long goes on: it counts again.
   */
  async #inTurn<T>(sub: string, run: () => Promise<T>): Promise<T> {
    const { sessions, store } = this.#parts
    const place = turnOf(subTag(sessions.audience, sub))
    const outcome = await retryUntil(() => underLease(place, store, run), turnWaitMs)
    return outcome === undefined ? run() : outcome.result
  }
}

/** A token for a form: only a browser with the secret, and only for this target. */
function endingToken(secret: string, target: string): string {
  return sha256('the end of a session', secret, target)
}

/** The later sign-in first; of two at the same time, the greater key. */
function latestFirst(a: StoredSession, b: StoredSession): number {
  return b.record.created_at - a.record.created_at || (a.key < b.key ? 1 : -1)
}

/** The place of the lease. It has the form of a key of a session, and is in the slot of the sub. */
function turnOf(tag: string): SessionKey {
  return `${tag}:${sha256('the turn of a sign-in').slice(0, 32)}` as SessionKey
}
