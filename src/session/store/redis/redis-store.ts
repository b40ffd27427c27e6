import type { RedisStoreConfig } from '../../../config/model/session.ts'
import type { Clock } from '../../../core/clock.ts'
import type { SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import { randomToken } from '../../../core/random.ts'
import type { Log } from '../../../observe/log.ts'
import type { EndingReach } from '../../../observe/processes.ts'
import { tagOf } from '../../record/record.ts'
import {
  type EndedSession,
  jobOutlivesSessionMs,
  type LogoutOrder,
  type NewSession,
  type SealedDocument,
  type SealedSession,
  type SessionStore,
  type StoreNotice,
  type StoreTime,
} from '../store.ts'
import { AbandonedLeases } from './abandoned-leases.ts'
import { redisSchemeMismatch } from './advice.ts'
import { StoreFitness } from './fitness.ts'
import { asBuffer, atLeast1, hashOf, RedisKeys } from './keys.ts'
import { RedisRuns } from './losses.ts'
import { RedisNotices } from './notices.ts'
import { reportAvailability } from './redis-connection.ts'
import { RedisEndings } from './redis-endings.ts'
import { RedisKeptStore } from './redis-kept-store.ts'
import { RedisLogoutJobs } from './redis-logout-jobs.ts'
import { connectToRedis, type RedisServers } from './servers.ts'
import { SharedReads } from './shared-reads.ts'

/** How many entries Redis looks at in one step of a scan, before it runs other commands. */
const scanCount = 1_000

export interface RedisStoreParts {
  readonly log: Log
  readonly clock: Clock
  /** Called before an ending resolves: how its notice reached the processes. */
  readonly onReached?: ((keys: readonly SessionKey[], reach: EndingReach) => void) | undefined
}

/** Enough keys that a node of a Cluster does not own the slots of all of them. */
const pingedKeys = 8

/**
 * A session store in Redis, shared by all processes. It connects in the background, and each method
 * rejects while Redis is unavailable.
 *
 * An ending resolves when every process that receives notices has dropped the sessions, but at most
 * 250 ms after the reply of Redis. A process that hangs for longer may still serve its copy, until
 * its last proof expires (1.5 s).
 */
export class RedisStore implements SessionStore {
  readonly jobs: RedisLogoutJobs
  readonly kept: RedisKeptStore
  readonly #servers: RedisServers
  readonly #commands: RedisServers['commands']
  readonly #notices: RedisNotices
  readonly #endings: RedisEndings
  readonly #keys: RedisKeys
  readonly #reads: SharedReads
  readonly #runs: RedisRuns
  readonly #clock: Clock
  readonly #abandoned = new AbandonedLeases((place, owner) => this.#commands.run('releaseLease', [place], [owner]))

  constructor(config: RedisStoreConfig, { log, clock, onReached }: RedisStoreParts) {
    const servers = connectToRedis(config)
    const { commands } = servers
    // First, so that the trial comes before all other commands of a connection.
    commands.fitness = new StoreFitness(commands, config.keyPrefix, log)
    const keys = new RedisKeys(config.keyPrefix)
    this.#servers = servers
    this.#commands = commands
    this.#reads = new SharedReads(commands)
    this.#keys = keys
    this.jobs = new RedisLogoutJobs(commands, keys)
    this.kept = new RedisKeptStore(commands, keys)
    this.#clock = clock
    const notices = new RedisNotices({
      ...servers,
      keys,
      log,
      clock,
      onReached,
      onTombstone: (tombstone) => this.#endings.recent.rememberTombstone(tombstone),
    })
    this.#notices = notices
    this.#runs = new RedisRuns(commands, log)
    const { replicasAcknowledge } = config
    this.#endings = new RedisEndings({ ...servers, replicasAcknowledge, keys, notices, log })
    notices.listen((notice) => {
      if (notice.kind === 'ended') this.#endings.recent.remember(notice.keys)
      if (notice.kind === 'resumed') this.#endings.recent.repeat()
    })
    reportAvailability(commands, log, (problem) => redisSchemeMismatch(problem, config))
  }

  async create(session: NewSession): Promise<'created' | 'ended'> {
    const { key, subTag, sealed, idle_timeout, begun_at } = session
    const { index, tombstone, session: place, ended } = this.#keys.session(key)
    const remaining = Math.floor(session.absolute_expires_at - this.#clock.now())
    const inTime = this.#commands.deadline()
    const { recent } = this.#endings
    const isRejected = () => recent.rejects(tagOf(key), begun_at) || recent.rejects(subTag, begun_at)
    const entry = { key, subTag, begun_at, until: performance.now() + remaining }

    if (isRejected() || !(await inTime(this.#endings.enter(entry)))) return 'ended'

    const args = [
      hashOf(key),
      asBuffer(sealed),
      subTag,
      Math.floor(idle_timeout),
      remaining,
      begun_at,
      await inTime(this.#runs.current(tagOf(key))),
    ]
    const places = [place, index, tombstone, ended]
    const created = !isRejected() && (await inTime(this.#commands.run('create', places, args)))
    if (created === 1) {
      if (this.#commands.redis.isCluster) recent.rememberEntry(entry)
      return 'created'
    }
    await this.#endings.leaveSubs([{ key, subTag }])
    return 'ended'
  }

  async read(key: SessionKey): Promise<SealedSession | undefined> {
    const [sealed, version, run, ttl, begun] = await this.#reads.read(this.#keys.sessionAt(key))
    if (!sealed || !version) return undefined
    const runName = run?.toString() ?? ''
    const isDoubtful = !this.#runs.isKnown(runName) && (await this.#runs.isUnknown(runName))
    const begun_at = begun ? Number(begun) : undefined
    return {
      sealed,
      version: Number(version),
      begun_at,
      expiresIn: Math.max(0, ttl),
      ...(isDoubtful && { isDoubtful }),
    }
  }

  async replace(
    key: SessionKey,
    sealed: Uint8Array,
    version: number,
    job?: Uint8Array | 'none',
    isQuiet = false,
    staysDoubtful = false,
  ): Promise<'replaced' | 'conflict' | 'gone'> {
    const run = staysDoubtful ? 'same' : await this.#runs.current(tagOf(key))
    const notice = isQuiet ? '' : this.#notices.messages.changed(key)
    const args = [asBuffer(sealed), version, this.#notices.channel, notice, run]
    const withJob = job === undefined ? [] : [job === 'none' ? '' : asBuffer(job), jobOutlivesSessionMs]
    const places = this.#keys.session(key)
    const outcome = await this.#commands.run('replace', [places.session, places.job], [...args, ...withJob])
    if (String(outcome) === 'replaced' && !isQuiet) await this.#notices.publishToo(notice)
    return String(outcome) as 'replaced' | 'conflict' | 'gone'
  }

  async touch(key: SessionKey, idle_timeout: number): Promise<boolean> {
    return (await this.#commands.run('touch', [this.#keys.sessionAt(key)], [Math.floor(idle_timeout)])) === 1
  }

  async expiresIn(key: SessionKey): Promise<number | undefined> {
    const ttl = await this.#commands.reply(this.#commands.redis.pttl(this.#keys.sessionAt(key)))
    return ttl < 0 ? undefined : ttl
  }

  endOne(key: SessionKey): Promise<readonly EndedSession[]> {
    return this.#endings.endOne(key)
  }

  endSid(tag: SidTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    return this.#endings.endSid(tag, order)
  }

  endSub(tag: SubTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    return this.#endings.endSub(tag, order)
  }

  async *list(): AsyncIterable<readonly SessionKey[]> {
    const pattern = this.#keys.anySession()
    for (const server of this.#commands.primaries()) {
      let cursor = '0'
      do {
        const scanning = server.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount)
        const [next, places] = await this.#commands.reply(scanning)
        yield places.flatMap((place) => this.#keys.keyAt(place) ?? [])
        cursor = next
      } while (cursor !== '0')
    }
  }

  async listSid(tag: SidTag): Promise<readonly SessionKey[]> {
    const listing = this.#commands.redis.zrevrange(this.#keys.sidIndex(tag), '0', '-1')
    return (await this.#commands.reply(listing)).map((hash) => `${tag}:${hash}` as SessionKey)
  }

  async listSub(tag: SubTag): Promise<readonly SessionKey[]> {
    const listing = this.#commands.redis.zrevrange(this.#keys.subIndex(tag), '0', '-1')
    return (await this.#commands.reply(listing)) as SessionKey[]
  }

  async takeOnce(name: string, ttl: number): Promise<boolean> {
    const taking = this.#commands.redis.set(this.#keys.once(name), '1', 'PX', atLeast1(ttl), 'NX')
    return (await this.#commands.reply(taking)) === 'OK'
  }

  async isMarked(name: string): Promise<boolean> {
    return (await this.#commands.reply(this.#commands.redis.exists(this.#keys.once(name)))) === 1
  }

  async acquireLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    const { lease } = this.#keys.session(key)
    const taking = this.#commands.redis.set(lease, owner, 'PX', atLeast1(ttl), 'NX')
    return (await this.#orAbandon(this.#commands.reply(taking), lease, owner)) === 'OK'
  }

  async renewLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    return (await this.#commands.run('renewLease', [this.#keys.session(key).lease], [owner, atLeast1(ttl)])) === 1
  }

  async releaseLease(key: SessionKey, owner: string): Promise<void> {
    const { lease } = this.#keys.session(key)
    await this.#orAbandon(this.#commands.run('releaseLease', [lease], [owner]), lease, owner)
  }

  async #orAbandon<T>(command: Promise<T>, lease: string, owner: string): Promise<T> {
    try {
      return await command
    } catch (error) {
      this.#abandoned.add(lease, owner)
      throw error
    }
  }

  async readDocument(name: string): Promise<SealedDocument | undefined> {
    const reading = this.#commands.redis.hmgetBuffer(this.#keys.document(name), 'sealed', 'version')
    const [sealed, version] = await this.#commands.reply(reading)
    return sealed && version ? { sealed, version: Number(version) } : undefined
  }

  async writeDocument(name: string, { sealed, version }: SealedDocument, ttl: number): Promise<boolean> {
    const args = [asBuffer(sealed), version, atLeast1(ttl)]
    return (await this.#commands.run('writeDocument', [this.#keys.document(name)], args)) === 1
  }

  onNotice(listener: (notice: StoreNotice) => void, isProvenIdle?: boolean): () => void {
    return this.#notices.listen(listener, isProvenIdle)
  }

  receivesNotices(): boolean {
    return this.#notices.isReceiving()
  }

  staleForMs(): number {
    return this.#notices.staleForMs()
  }

  time(): Promise<StoreTime> {
    return this.#notices.time()
  }

  /**
   * Waits for a connection that is being opened, for a check at the start. PERSIST changes nothing
   * but counts as a write: a replica rejects it, and a node of a Cluster rejects keys of others.
   */
  async ping(): Promise<void> {
    const inTime = this.#commands.deadline()
    await inTime(this.#commands.ready())
    const { redis } = this.#commands
    // A Cluster that lacks a node still serves the sessions of the others.
    if (redis.isCluster) return void (await inTime(this.#commands.reply(redis.ping())))
    const keys = Array.from({ length: pingedKeys }, () => this.#keys.sidIndex(randomToken(12) as SidTag))
    await inTime(Promise.all(keys.map((key) => this.#commands.reply(redis.persist(key)))))
  }

  renewCredentials(config: RedisStoreConfig): void {
    const { commands, subscriber, endings } = this.#servers
    for (const connection of [commands, subscriber, endings]) connection?.renewCredentials(config)
  }

  async close(): Promise<void> {
    this.#endings.recent.clear()
    this.#notices.close()
    const { commands, subscriber, endings } = this.#servers
    await Promise.all([this.#abandoned.stop(), commands.close(), subscriber.close(), endings?.close()])
  }
}
