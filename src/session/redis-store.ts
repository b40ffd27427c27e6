import type { RedisStoreConfig } from '../config/model.ts'
import type { Clock } from '../core/clock.ts'
import type { SessionKey, SidTag, SubTag } from '../core/names.ts'
import { sha256 } from '../core/random.ts'
import type { Log } from '../observe/log.ts'
import { tagOf } from './record.ts'
import { RedisConnection, reportAvailability } from './redis-connection.ts'
import { RedisNotices } from './redis-notices.ts'
import type { EndedSession, LogoutOrder, NewSession, SealedSession, SessionStore, StoreNotice } from './store.ts'

/**
 * Sessions in Redis, shared by all processes. Connects in the background, and does not fail when Redis is away: then each method
 * rejects, until Redis is back. An ending resolves when every process that listens has dropped the sessions, or a quarter of
 * a second after Redis has answered: a process that hangs for longer may serve its copy for the 1.5 s in which it believes to hear.
 */
export function createRedisStore(
  config: RedisStoreConfig,
  parts: { readonly log: Log; readonly clock: Clock },
): SessionStore {
  return new SessionsInRedis(config, parts.log, parts.clock)
}

/** What a script found and ended, with the sub each session was indexed under. */
interface Ended extends EndedSession {
  readonly subTag: SubTag
}

class SessionsInRedis implements SessionStore {
  readonly #commands: RedisConnection
  readonly #subscriber: RedisConnection
  readonly #notices: RedisNotices
  readonly #keys: RedisKeys
  readonly #clock: Clock
  readonly #timeoutMs: number

  constructor(config: RedisStoreConfig, log: Log, clock: Clock) {
    this.#commands = new RedisConnection(config, 'commands')
    this.#subscriber = new RedisConnection(config, 'notices')
    this.#notices = new RedisNotices(this.#commands, this.#subscriber, config.keyPrefix, log)
    this.#keys = new RedisKeys(config.keyPrefix)
    this.#clock = clock
    this.#timeoutMs = config.timeoutMs
    reportAvailability(this.#commands, log)
  }

  async create(session: NewSession): Promise<'created' | 'ended'> {
    const { key, subTag, sealed, idle_timeout, begun_at } = session
    const { index, tombstone, session: place, ended } = this.#placesOf(key)
    const remaining = Math.floor(session.absolute_expires_at - this.#clock.now())
    const intime = this.#deadline()

    const subKeys = [this.#keys.subIndex(subTag), this.#keys.tombstone(subTag)]
    if ((await intime(this.#commands.run('enterSub', subKeys, [key, remaining, begun_at]))) !== 1) return 'ended'

    const args = [hashOf(key), bytes(sealed), subTag, Math.floor(idle_timeout), remaining, begun_at]
    const created = await intime(this.#commands.run('create', [place, index, tombstone, ended], args))
    if (created === 1) return 'created'
    await this.#leaveSubs([{ key, subTag }])
    return 'ended'
  }

  async read(key: SessionKey): Promise<SealedSession | undefined> {
    const { session } = this.#placesOf(key)
    const [sealed, version] = await this.#commands.answer(
      this.#commands.redis.hmgetBuffer(session, 'sealed', 'version'),
    )
    return sealed && version ? { sealed, version: Number(version) } : undefined
  }

  async replace(key: SessionKey, sealed: Uint8Array, version: number): Promise<'replaced' | 'conflict' | 'gone'> {
    const args = [bytes(sealed), version, this.#notices.channel, this.#notices.changed(key)]
    const outcome = await this.#commands.run('replace', [this.#placesOf(key).session], args)
    return String(outcome) as 'replaced' | 'conflict' | 'gone'
  }

  async touch(key: SessionKey, idle_timeout: number): Promise<boolean> {
    return (await this.#commands.run('touch', [this.#placesOf(key).session], [Math.floor(idle_timeout)])) === 1
  }

  async endOne(key: SessionKey): Promise<readonly EndedSession[]> {
    const { ended, confirmed } = await this.#end(tagOf(key), [key], { tombstone_ttl: 0 })
    await Promise.all([confirmed, this.#leaveSubs(ended)])
    return ended.map(endedSession)
  }

  async endSid(tag: SidTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    const intime = this.#deadline()
    const hashes = await intime(this.#begin(this.#keys.sidIndex(tag), tag, order))
    if (hashes === 'replayed') return 'replayed'

    const keys = hashes.map((hash) => `${tag}:${hash}` as SessionKey)
    // The sid's own tombstone stands, so the sessions need none.
    const outcome = await intime(this.#end(tag, keys, { tombstone_ttl: 0, order }))
    await Promise.all([outcome.confirmed, this.#leaveSubs(outcome.ended)])
    return outcome.replayed ? 'replayed' : outcome.ended.map(endedSession)
  }

  async endSub(tag: SubTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    const intime = this.#deadline()
    const index = this.#keys.subIndex(tag)
    const keys = (await intime(this.#begin(index, tag, order))) as SessionKey[] | 'replayed'
    if (keys === 'replayed') return 'replayed'

    const { tombstone_ttl } = order
    const ending = [...bySlot(keys)].map(([slot, members]) => this.#end(slot, members, { tombstone_ttl }))
    const outcomes = await intime(Promise.all(ending))
    // Only now: if we had failed before, the provider's next attempt has to find the token unused.
    const taking = this.#commands.run(
      'finishEnding',
      [index, this.#keys.jti(tag, order)],
      [atLeast1(order.jti_ttl), ...keys],
    )
    const taken = await intime(taking)
    await Promise.all(outcomes.map(({ confirmed }) => confirmed))
    const ended = outcomes.flatMap((outcome) => outcome.ended.map(endedSession))
    // The same token twice at the same moment: each answers for the sessions that it ended.
    return taken === 1 || ended.length > 0 ? ended : 'replayed'
  }

  async takeOnce(name: string, ttl: number): Promise<boolean> {
    const taking = this.#commands.redis.set(this.#keys.once(name), '1', 'PX', atLeast1(ttl), 'NX')
    return (await this.#commands.answer(taking)) === 'OK'
  }

  async acquireLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    const taking = this.#commands.redis.set(this.#placesOf(key).lease, owner, 'PX', atLeast1(ttl), 'NX')
    return (await this.#commands.answer(taking)) === 'OK'
  }

  async renewLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    return (await this.#commands.run('renewLease', [this.#placesOf(key).lease], [owner, atLeast1(ttl)])) === 1
  }

  async releaseLease(key: SessionKey, owner: string): Promise<void> {
    await this.#commands.run('releaseLease', [this.#placesOf(key).lease], [owner])
  }

  onNotice(listener: (notice: StoreNotice) => void): void {
    this.#notices.listen(listener)
  }

  hearsNotices(): boolean {
    return this.#notices.hears()
  }

  /** Waits for a connection that is being made: what is asked at start is whether there is a store, not whether it is there yet. */
  async ping(): Promise<void> {
    const intime = this.#deadline()
    await intime(this.#commands.ready())
    await intime(this.#commands.answer(this.#commands.redis.ping()))
  }

  async close(): Promise<void> {
    this.#notices.close()
    await Promise.all([this.#commands.close(), this.#subscriber.close()])
  }

  /** Raises the tombstone of a sid or sub and answers who is in its index. */
  async #begin(index: string, tag: SidTag | SubTag, order: LogoutOrder): Promise<string[] | 'replayed'> {
    const keys = [index, this.#keys.tombstone(tag), this.#keys.jti(tag, order)]
    const members = await this.#commands.run('beginEnding', keys, [Math.floor(order.at), atLeast1(order.tombstone_ttl)])
    return members === null ? 'replayed' : (members as Buffer[]).map(String)
  }

  /** Ends sessions of one slot; with an order its jti is taken in the same step. */
  async #end(
    tag: SidTag,
    keys: readonly SessionKey[],
    { tombstone_ttl, order }: { readonly tombstone_ttl: number; readonly order?: LogoutOrder },
  ): Promise<{ readonly ended: readonly Ended[]; readonly replayed: boolean; readonly confirmed: Promise<void> }> {
    const places = keys
      .map((key) => this.#placesOf(key))
      .flatMap(({ session, lease, ended }) => [session, lease, ended])
    const scriptKeys = [this.#keys.sidIndex(tag), ...places, ...(order ? [this.#keys.jti(tag, order)] : [])]
    const announcement = this.#notices.ended(keys)
    const ttls = [tombstone_ttl > 0 ? atLeast1(tombstone_ttl) : 0, order ? atLeast1(order.jti_ttl) : 0]
    const args = [this.#notices.channel, announcement.text, ...ttls, ...keys.map(hashOf)]

    const { answer, confirmed } = await this.#notices.tell(announcement, async () => {
      const answer = (await this.#commands.run('endSessions', scriptKeys, args)) as [number, ...Buffer[]] | null
      return { answer, told: answer === null ? 0 : answer[0] }
    })
    return { ended: answer === null ? [] : endedFrom(tag, answer), replayed: answer === null, confirmed }
  }

  /** Takes ended sessions out of their subs' indexes: for tidiness only, since an entry of an ended session ends nothing. */
  async #leaveSubs(sessions: readonly { readonly key: SessionKey; readonly subTag: SubTag }[]): Promise<void> {
    const leaving = sessions.map(({ key, subTag }) => this.#commands.redis.zrem(this.#keys.subIndex(subTag), key))
    await Promise.allSettled(leaving)
  }

  #placesOf(key: SessionKey): SessionPlaces {
    return this.#keys.session(tagOf(key), hashOf(key))
  }

  /** For a method of several steps: none of them is waited for when the method's time is up, and none is begun then. */
  #deadline(): <T>(step: Promise<T>) => Promise<T> {
    const until = performance.now() + this.#timeoutMs
    return async (step) => {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_, reject) => {
        const refuse = () => reject(this.#commands.unavailable(`no answer within ${this.#timeoutMs} ms`))
        timer = setTimeout(refuse, Math.max(0, until - performance.now()))
      })
      try {
        return await Promise.race([step, late])
      } finally {
        clearTimeout(timer)
      }
    }
  }
}

interface SessionPlaces {
  readonly session: string
  readonly lease: string
  /** The tombstone of this one session. */
  readonly ended: string
  /** Those of its sid. */
  readonly index: string
  readonly tombstone: string
}

/** Where things lie. What stands in braces decides the slot in a Cluster: one for each sid, and one for each sub. */
class RedisKeys {
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  session(tag: SidTag, hash: string): SessionPlaces {
    const slot = `${this.#prefix}{${tag}}`
    return {
      session: `${slot}:s:${hash}`,
      lease: `${slot}:l:${hash}`,
      ended: `${slot}:t:${hash}`,
      index: this.sidIndex(tag),
      tombstone: this.tombstone(tag),
    }
  }

  sidIndex(tag: SidTag): string {
    return `${this.#prefix}{${tag}}:i`
  }

  subIndex(tag: SubTag): string {
    return `${this.#prefix}{${tag}}:u`
  }

  tombstone(tag: SidTag | SubTag): string {
    return `${this.#prefix}{${tag}}:t`
  }

  jti(tag: SidTag | SubTag, order: LogoutOrder): string {
    return `${this.#prefix}{${tag}}:j:${order.jti}`
  }

  /** Hashed: a name may be long, or say more than Redis has to know. */
  once(name: string): string {
    return `${this.#prefix}o:${sha256(name)}`
  }
}

function hashOf(key: SessionKey): string {
  return key.slice(key.indexOf(':') + 1)
}

function bySlot(keys: readonly SessionKey[]): Map<SidTag, SessionKey[]> {
  const slots = new Map<SidTag, SessionKey[]>()
  for (const key of keys) {
    const members = slots.get(tagOf(key))
    if (members) members.push(key)
    else slots.set(tagOf(key), [key])
  }
  return slots
}

/** After the number of the told come three for each session: its hash, sealed bytes and sub tag. */
function endedFrom(tag: SidTag, [, ...found]: readonly [number, ...Buffer[]]): Ended[] {
  const ended: Ended[] = []
  for (let at = 0; at + 2 < found.length; at += 3) {
    const [hash, sealed, subTag] = found.slice(at, at + 3) as [Buffer, Buffer, Buffer]
    ended.push({ key: `${tag}:${hash.toString()}` as SessionKey, sealed, subTag: subTag.toString() as SubTag })
  }
  return ended
}

function endedSession({ key, sealed }: Ended): EndedSession {
  return { key, sealed }
}

function bytes(sealed: Uint8Array): Buffer {
  return Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
}

/** Redis takes whole milliseconds, and no expiry that lies in the past. */
function atLeast1(ms: number): number {
  return Math.max(1, Math.ceil(ms))
}
