import { LRUCache } from 'lru-cache'
import type { RedisStoreConfig } from '../../config/model.ts'
import type { Clock } from '../../core/clock.ts'
import type { SessionKey, SidTag, SubTag } from '../../core/names.ts'
import type { Log } from '../../observe/log.ts'
import { tagOf } from '../record.ts'
import type {
  EndedSession,
  LogoutOrder,
  NewSession,
  SealedSession,
  SessionStore,
  StoreNotice,
  StoreTime,
  Tombstone,
} from '../store.ts'
import { AcknowledgedWrites } from './acknowledged-writes.ts'
import { type Deadline, type RedisConnection, reportAvailability } from './connection.ts'
import { bySlot, hashOf, RedisKeys } from './keys.ts'
import { RedisNotices } from './notices.ts'
import { RecentEndings } from './recent-endings.ts'
import { RedisRuns } from './runs.ts'
import { redisSchemeMismatch } from './scheme.ts'
import type { ScriptName } from './scripts.ts'
import { connectToRedis } from './servers.ts'

/** How many sessions are ended in one go. */
const chunkSize = 200

/**
 * How many entries Redis looks at before others have their turn, when all of them are gone through.
 */
const scanCount = 1_000

/**
 * Sessions in Redis, shared by all processes. Connects in the background, and does not fail when
 * Redis is away: then each method rejects, until Redis is back. An ending resolves when every
 * process that listens has dropped the sessions, or a quarter of a second after Redis has answered:
 * a process that hangs for longer may serve its copy for the 1.5 s in which it believes to hear.
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

/** How sessions are ended. */
interface Ending {
  /** How long the tombstone of each single session stands; 0: there is none. */
  readonly tombstone_ttl: number
  /** Whether they leave the index of their sid at once. */
  readonly leave: boolean
}

/** Sessions that were ended in Redis. */
interface EndedInRedis {
  /** Resolves when the other processes have dropped them. */
  readonly confirmed: Promise<void>
  /** Resolves when enough replicas have it; rejects with `ERR_STORE_UNAVAILABLE`. */
  readonly acknowledged: Promise<unknown>
}

/** How many sessions are remembered that have ended in Redis and are not reported yet. */
const maxUnreported = 10_000

class SessionsInRedis implements SessionStore {
  readonly #commands: RedisConnection
  readonly #subscriber: RedisConnection
  readonly #writer: RedisConnection | undefined
  readonly #acknowledged: AcknowledgedWrites | undefined
  /** Ended in Redis by an attempt that may still fail: the attempt that succeeds reports them. */
  readonly #unreported = new LRUCache<SessionKey, Ended>({ max: maxUnreported })
  readonly #notices: RedisNotices
  readonly #endings: RecentEndings
  readonly #keys: RedisKeys
  readonly #runs: RedisRuns
  readonly #clock: Clock

  constructor(config: RedisStoreConfig, log: Log, clock: Clock) {
    const { commands, subscriber, endings } = connectToRedis(config)
    this.#commands = commands
    this.#subscriber = subscriber
    this.#writer = endings
    this.#acknowledged = endings && new AcknowledgedWrites(endings, config.replicasAcknowledge, log)
    this.#keys = new RedisKeys(config.keyPrefix)
    this.#notices = new RedisNotices(commands, subscriber, this.#keys, {
      log,
      clock,
      onTombstone: (tombstone) => this.#endings.rememberTombstone(tombstone),
    })
    this.#clock = clock
    this.#runs = new RedisRuns(commands, log)
    this.#endings = new RecentEndings((keys, tombstones) => this.#endAgain(keys, tombstones), log)
    this.#notices.listen((notice) => {
      if (notice.kind === 'ended') this.#endings.remember(notice.keys)
      if (notice.kind === 'resumed') this.#endings.repeat()
    })
    reportAvailability(this.#commands, log, (why) => redisSchemeMismatch(why, config))
  }

  async create(session: NewSession): Promise<'created' | 'ended'> {
    const { key, subTag, sealed, idle_timeout, begun_at } = session
    const { index, tombstone, session: place, ended } = this.#keys.session(key)
    const remaining = Math.floor(session.absolute_expires_at - this.#clock.now())
    const intime = this.#commands.deadline()
    const isRefused = () => this.#endings.refuses(tagOf(key), begun_at) || this.#endings.refuses(subTag, begun_at)

    if (isRefused()) return 'ended'
    const subKeys = [this.#keys.subIndex(subTag), this.#keys.tombstone(subTag)]
    if ((await intime(this.#commands.run('enterSub', subKeys, [key, remaining, begun_at]))) !== 1) return 'ended'

    const args = [
      hashOf(key),
      bytes(sealed),
      subTag,
      Math.floor(idle_timeout),
      remaining,
      begun_at,
      await intime(this.#runs.current(tagOf(key))),
    ]
    const created = !isRefused() && (await intime(this.#commands.run('create', [place, index, tombstone, ended], args)))
    if (created === 1) return 'created'
    await this.#leaveSubs([{ key, subTag }])
    return 'ended'
  }

  async read(key: SessionKey): Promise<SealedSession | undefined> {
    const { session } = this.#keys.session(key)
    const reading = this.#commands.redis.hmgetBuffer(session, 'sealed', 'version', 'run')
    const [sealed, version, run] = await this.#commands.answer(reading)
    if (!sealed || !version) return undefined
    const isDoubtful = await this.#runs.isUnknown(run?.toString() ?? '')
    return { sealed, version: Number(version), ...(isDoubtful && { isDoubtful }) }
  }

  async replace(key: SessionKey, sealed: Uint8Array, version: number): Promise<'replaced' | 'conflict' | 'gone'> {
    const run = await this.#runs.current(tagOf(key))
    const args = [bytes(sealed), version, this.#notices.channel, this.#notices.changed(key), run]
    const outcome = await this.#commands.run('replace', [this.#keys.session(key).session], args)
    if (String(outcome) === 'replaced') await this.#notices.tellChanged(key)
    return String(outcome) as 'replaced' | 'conflict' | 'gone'
  }

  async touch(key: SessionKey, idle_timeout: number): Promise<boolean> {
    return (await this.#commands.run('touch', [this.#keys.session(key).session], [Math.floor(idle_timeout)])) === 1
  }

  async endOne(key: SessionKey): Promise<readonly EndedSession[]> {
    const intime = this.#commands.deadline()
    const how = { tombstone_ttl: 0, leave: true }
    const { confirmed, acknowledged } = await intime(this.#end([key], { how, until: intime.until }))
    await intime(acknowledged)
    await confirmed
    const ended = this.#report([key])
    await this.#leaveSubs(ended)
    return ended.map(endedSession)
  }

  async endSid(tag: SidTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    // The sid's own tombstone stands, so the sessions need none.
    const outcome = await this.#carryOut(order, tag, {
      index: this.#keys.sidIndex(tag),
      keyOf: (hash) => `${tag}:${hash}` as SessionKey,
      how: { tombstone_ttl: 0, leave: false },
    })
    if (outcome === 'replayed') return outcome
    await this.#leaveSubs(outcome)
    return outcome.map(endedSession)
  }

  async endSub(tag: SubTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    const outcome = await this.#carryOut(order, tag, {
      index: this.#keys.subIndex(tag),
      keyOf: (key) => key as SessionKey,
      how: { tombstone_ttl: atLeast1(order.tombstone_ttl), leave: true },
    })
    return outcome === 'replayed' ? outcome : outcome.map(endedSession)
  }

  async *list(): AsyncIterable<readonly SessionKey[]> {
    const pattern = this.#keys.anySession()
    for (const server of this.#commands.primaries()) {
      let cursor = '0'
      do {
        const scanning = server.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount)
        const [next, places] = await this.#commands.answer(scanning)
        yield places.flatMap((place) => this.#keys.keyAt(place) ?? [])
        cursor = next
      } while (cursor !== '0')
    }
  }

  async listSid(tag: SidTag): Promise<readonly SessionKey[]> {
    const listing = this.#commands.redis.zrevrange(this.#keys.sidIndex(tag), '0', '-1')
    return (await this.#commands.answer(listing)).map((hash) => `${tag}:${hash}` as SessionKey)
  }

  async listSub(tag: SubTag): Promise<readonly SessionKey[]> {
    const listing = this.#commands.redis.zrevrange(this.#keys.subIndex(tag), '0', '-1')
    return (await this.#commands.answer(listing)) as SessionKey[]
  }

  async takeOnce(name: string, ttl: number): Promise<boolean> {
    const taking = this.#commands.redis.set(this.#keys.once(name), '1', 'PX', atLeast1(ttl), 'NX')
    return (await this.#commands.answer(taking)) === 'OK'
  }

  async acquireLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    const taking = this.#commands.redis.set(this.#keys.session(key).lease, owner, 'PX', atLeast1(ttl), 'NX')
    return (await this.#commands.answer(taking)) === 'OK'
  }

  async renewLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    return (await this.#commands.run('renewLease', [this.#keys.session(key).lease], [owner, atLeast1(ttl)])) === 1
  }

  async releaseLease(key: SessionKey, owner: string): Promise<void> {
    await this.#commands.run('releaseLease', [this.#keys.session(key).lease], [owner])
  }

  onNotice(listener: (notice: StoreNotice) => void): () => void {
    return this.#notices.listen(listener)
  }

  hearsNotices(): boolean {
    return this.#notices.hears()
  }

  silentFor(): number {
    return this.#notices.silentFor()
  }

  time(): Promise<StoreTime> {
    return this.#notices.time()
  }

  /**
   * Waits for a connection that is being made: what is asked at start is whether there is a store,
   * not whether it is there yet.
   */
  async ping(): Promise<void> {
    const intime = this.#commands.deadline()
    await intime(this.#commands.ready())
    await intime(this.#commands.answer(this.#commands.redis.ping()))
  }

  async close(): Promise<void> {
    this.#endings.forget()
    this.#notices.close()
    await Promise.all([this.#commands.close(), this.#subscriber.close(), this.#writer?.close()])
  }

  /**
   * Ends all sessions of an index. They stay in it until all processes have been told, and the
   * token's jti is taken last: if anything fails before, the provider's next attempt finds the
   * token unused, and who has to be told.
   */
  async #carryOut(
    order: LogoutOrder,
    tag: SidTag | SubTag,
    whom: { readonly index: string; readonly keyOf: (member: string) => SessionKey; readonly how: Ending },
  ): Promise<readonly Ended[] | 'replayed'> {
    const { index, keyOf, how } = whom
    const jti = this.#keys.jti(tag, order.jti)
    const tombstone: Tombstone = { tag, at: Math.floor(order.at), ttl: atLeast1(order.tombstone_ttl) }
    let intime: Deadline = this.#commands.deadline()
    const beginning = this.#write(tag, 'beginEnding', {
      keys: [index, this.#keys.tombstone(tag), jti],
      args: [tombstone.at, tombstone.ttl, this.#notices.channel, this.#notices.raised(tombstone)],
      until: intime.until,
    })
    const { answer, acknowledged: hasBegun } = await intime(beginning)
    const members = answer as Buffer[] | null
    if (members === null) return 'replayed'
    this.#endings.rememberTombstone(tombstone)
    void this.#notices.tellRaised(tombstone)

    const confirmed: Promise<void>[] = []
    let taken = false
    for (const [count, chunk] of chunksOf(members.map(String)).entries()) {
      // Each further chunk has the whole time: a person with thousands of sessions is signed out of
      // them too.
      if (count > 0) intime = this.#commands.deadline()
      const keys = chunk.members.map(keyOf)
      const outcome = await intime(this.#end(keys, { how, until: intime.until }))
      confirmed.push(outcome.confirmed)
      await intime(Promise.all([hasBegun, outcome.acknowledged]))
      const args = [chunk.isLast ? atLeast1(order.jti_ttl) : 0, ...chunk.members]
      taken = (await intime(this.#commands.run('finishEnding', [index, jti], args))) === 1
    }
    await Promise.all(confirmed)
    const reported = this.#report(members.map(String).map(keyOf))
    // The same token twice at the same moment: each attempt reports the sessions that the other one
    // does not.
    return taken || reported.length > 0 ? reported : 'replayed'
  }

  /** Ends sessions, slot by slot, and tells all processes. */
  async #end(
    keys: readonly SessionKey[],
    { how, until }: { readonly how: Ending; readonly until: number },
  ): Promise<EndedInRedis> {
    if (keys.length === 0) return { confirmed: Promise.resolve(), acknowledged: Promise.resolve() }
    const ending = [...bySlot(keys)].map(async ([tag, members]) => {
      const { answer, acknowledged } = await this.#write(tag, 'endSessions', {
        ...this.#endingOf(tag, members, how),
        until,
      })
      for (const each of endedFrom(tag, answer as Buffer[])) this.#unreported.set(each.key, each)
      // In an object, because an async function waits for a promise that it returns.
      return { acknowledged }
    })
    // What has ended in one slot is known before the failure of another one is told.
    await Promise.allSettled(ending)
    const acknowledgements = await Promise.all(ending)
    this.#endings.remember(keys)
    const { confirmed } = await this.#notices.tellEnded(keys)
    const acknowledged = Promise.all(acknowledgements.map(({ acknowledged }) => acknowledged))
    acknowledged.catch(() => {})
    return { confirmed, acknowledged }
  }

  /**
   * The sessions that have ended and that no other attempt has reported: the audit log has each
   * ending once.
   */
  #report(keys: readonly SessionKey[]): readonly Ended[] {
    return keys.flatMap((key) => {
      const ended = this.#unreported.get(key)
      this.#unreported.delete(key)
      return ended ?? []
    })
  }

  /**
   * Runs a script in the slot of a hash tag, and tells when as many replicas have it as the
   * configuration asks for.
   */
  async #write(
    tag: SidTag | SubTag,
    script: ScriptName,
    write: {
      readonly keys: readonly string[]
      readonly args: readonly (string | number)[]
      readonly until: number
    },
  ): Promise<{ readonly answer: unknown; readonly acknowledged: Promise<void> }> {
    if (this.#acknowledged === undefined || this.#writer === undefined)
      return { answer: await this.#commands.run(script, write.keys, write.args), acknowledged: Promise.resolve() }
    // At the start and after a failover one connection may be there before the other.
    if (this.#commands.redis.status === 'ready') await this.#writer.ready()
    return this.#acknowledged.run(tag, script, write)
  }

  /**
   * They stay in their indexes: an order that is not yet carried out has to find whom to tell of.
   */
  async #endAgain(keys: readonly SessionKey[], tombstones: readonly Tombstone[]): Promise<void> {
    // First the tombstones: after that no sign-in can add a session.
    for (const { members } of chunksOf(tombstones))
      await Promise.all(
        members.map(({ tag, at, ttl }) =>
          this.#commands.run('raiseTombstone', [this.#keys.tombstone(tag)], [at, atLeast1(ttl)]),
        ),
      )
    const how: Ending = { tombstone_ttl: 0, leave: false }
    for (const { members } of chunksOf(keys))
      await Promise.all(
        [...bySlot(members)].map(([tag, sessions]) => {
          const { keys, args } = this.#endingOf(tag, sessions, how)
          return this.#commands.run('endSessions', keys, args)
        }),
      )
  }

  /** The keys and arguments of `endSessions`. */
  #endingOf(tag: SidTag, keys: readonly SessionKey[], { tombstone_ttl, leave }: Ending) {
    const places = keys
      .map((key) => this.#keys.session(key))
      .flatMap(({ session, lease, ended }) => [session, lease, ended])
    const args = [this.#notices.channel, this.#notices.ended(keys), tombstone_ttl, leave ? 1 : 0, ...keys.map(hashOf)]
    return { keys: [this.#keys.sidIndex(tag), ...places], args }
  }

  /**
   * Takes ended sessions out of their subs' indexes: for tidiness only, since an entry of an ended
   * session ends nothing.
   */
  async #leaveSubs(sessions: readonly { readonly key: SessionKey; readonly subTag: SubTag }[]): Promise<void> {
    const leaving = sessions.map(({ key, subTag }) => this.#commands.redis.zrem(this.#keys.subIndex(subTag), key))
    await Promise.allSettled(leaving)
  }
}

function chunksOf<T>(members: readonly T[]): { readonly members: readonly T[]; readonly isLast: boolean }[] {
  const count = Math.max(1, Math.ceil(members.length / chunkSize))
  return Array.from({ length: count }, (_, n) => ({
    members: members.slice(n * chunkSize, (n + 1) * chunkSize),
    isLast: n === count - 1,
  }))
}

/** Three for each session: its hash, sealed bytes and sub tag. */
function endedFrom(tag: SidTag, found: readonly Buffer[]): Ended[] {
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
