import { BoundedMap } from '../../../core/bounded-map.ts'
import { reason } from '../../../core/errors.ts'
import type { SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import { Repeating } from '../../../core/repeating.ts'
import type { Log } from '../../../observe/log.ts'
import type { EndedSession, LogoutOrder, Tombstone } from '../store.ts'
import { AcknowledgedWrites } from './acknowledged-writes.ts'
import { atLeast1, bySlot, hashOf, type RedisKeys } from './keys.ts'
import type { RedisNotices } from './notices.ts'
import type { Deadline } from './redis-connection.ts'
import type { ScriptName } from './scripts.ts'
import type { RedisServers } from './servers.ts'

/** How many sessions are ended at a time. */
const chunkSize = 200

/** The maximum number of sessions that have ended in Redis but are not reported yet. */
const maxUnreported = 10_000

/** A session that a script ended, with the sub that it was indexed under. */
interface Ended extends EndedSession {
  readonly subTag: SubTag
}

interface EndingOptions {
  /** How long the tombstone of each session is kept; 0: the sessions have no tombstones. */
  readonly tombstone_ttl: number
  /** Whether the sessions leave the index of their sid at once. */
  readonly leave: boolean
  /** The `jti` that is taken in the same step, and for how long, in ms (0: it is not taken). */
  readonly jti?: { readonly key: string; readonly ttl: number }
}

interface EndedInRedis {
  /** Resolves when the other processes have dropped the sessions. */
  readonly confirmed: Promise<void>
  /** Resolves when enough replicas have the writes; rejects with `ERR_STORE_UNAVAILABLE`. */
  readonly acknowledged: Promise<unknown>
}

/** The index of a sid or a sub, whose sessions a Logout Token ends. */
interface IndexTarget {
  readonly index: string
  readonly keyOf: (member: string) => SessionKey
  readonly options: EndingOptions
  /** Whether the sessions are in the slot of the index. */
  readonly isOneSlot: boolean
}

interface TokenUse {
  readonly tag: SidTag | SubTag
  readonly jti: string
  /** How long the `jti` is kept, in ms. */
  readonly ttl: number
  /** Resolves when enough replicas have the tombstone. */
  readonly begun: Promise<void>
}

interface TokenSteps {
  readonly hasTakenJti: boolean
  /** Resolves when the other processes have dropped the sessions. Does not reject. */
  readonly confirmed: Promise<unknown>
}

export interface RedisEndingsParts extends Pick<RedisServers, 'commands' | 'endings'> {
  readonly replicasAcknowledge: number
  readonly keys: RedisKeys
  readonly notices: RedisNotices
  readonly log: Log
}

/** Ends sessions in Redis, and waits until all processes and enough replicas have the ending. */
export class RedisEndings {
  readonly recent: RecentEndings
  readonly #parts: RedisEndingsParts
  readonly #acknowledged: AcknowledgedWrites | undefined
  /**
   * By `jti`: the sessions of an attempt that has not succeeded. When a reply was lost or too late,
   * they may have ended and left the index, and the `jti` may be taken.
   */
  readonly #attempted = new BoundedMap<string, readonly SessionKey[]>('endings_attempted', maxUnreported, {
    sizeOf: ({ length }) => length,
  })
  /** Ended by an attempt that may still fail. The attempt that succeeds reports them. */
  readonly #unreported = new BoundedMap<SessionKey, Ended>('endings_unreported', maxUnreported)

  constructor(parts: RedisEndingsParts) {
    this.#parts = parts
    const { endings, replicasAcknowledge, log } = parts
    this.#acknowledged = endings && new AcknowledgedWrites(endings, replicasAcknowledge, log)
    this.recent = new RecentEndings((recent) => this.#repeat(recent), log)
  }

  async endOne(key: SessionKey): Promise<readonly EndedSession[]> {
    const inTime = this.#parts.commands.deadline()
    const options = { tombstone_ttl: 0, leave: true }
    const { confirmed, acknowledged } = await inTime(this.#end([key], { options, until: inTime.until }))
    await inTime(acknowledged)
    const ended = this.#report([key])
    await Promise.all([confirmed, this.leaveSubs(ended)])
    return ended.map(endedSession)
  }

  async endSid(tag: SidTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    // The tombstone of the sid is enough, so the sessions need none.
    return this.#endIndex(order, tag, {
      index: this.#parts.keys.sidIndex(tag),
      keyOf: (hash) => `${tag}:${hash}` as SessionKey,
      options: { tombstone_ttl: 0, leave: false },
      isOneSlot: true,
    })
  }

  async endSub(tag: SubTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    return this.#endIndex(order, tag, {
      index: this.#parts.keys.subIndex(tag),
      keyOf: (key) => key as SessionKey,
      options: { tombstone_ttl: atLeast1(order.ttl), leave: true },
      isOneSlot: false,
    })
  }

  /** Removes ended sessions from the indexes of their subs. An entry that stays ends nothing. */
  async leaveSubs(sessions: readonly { readonly key: SessionKey; readonly subTag: SubTag }[]): Promise<void> {
    const { commands, keys } = this.#parts
    await Promise.allSettled(sessions.map(({ key, subTag }) => commands.redis.zrem(keys.subIndex(subTag), key)))
  }

  /**
   * Ends all sessions of an index. They stay in it until all processes have been notified, and the
   * `jti` is taken last: if a step fails, the token can come again, and the rest is still in the
   * index. With one primary, one script does all of that for the sessions of a sid.
   */
  async #endIndex(
    order: LogoutOrder,
    tag: SidTag | SubTag,
    target: IndexTarget,
  ): Promise<readonly EndedSession[] | 'replayed'> {
    const { commands, keys, notices } = this.#parts
    const jti = keys.jti(tag, order.jti)
    const { issued_at } = order
    const tombstone: Tombstone = { tag, at: Math.floor(order.at), ttl: atLeast1(order.ttl), issued_at }
    const inTime = commands.deadline()
    const beginning = this.#write(tag, 'beginEnding', {
      keys: [target.index, keys.tombstone(tag), jti],
      args: [tombstone.at, tombstone.ttl, notices.channel, notices.messages.raised(tombstone)],
      until: inTime.until,
    })
    const { reply, acknowledged: begun } = await inTime(beginning)
    const present = (reply as Buffer[] | null)?.map(String)
    const members = present && (await this.#begunUntil(order.begun_until, present, target.keyOf))
    const attempted = this.#attempted.get(jti) ?? []
    if (members === undefined && attempted.length === 0) return 'replayed'

    // Each session once, because each is reported once.
    const all = [...new Set([...attempted, ...(members ?? []).map(target.keyOf)])]
    if (all.length > 0) this.#attempted.set(jti, all)
    const before = attempted.length > 0 ? await inTime(notices.publishEnded(attempted)) : undefined
    let steps: TokenSteps = { hasTakenJti: false, confirmed: Promise.resolve() }
    if (members !== undefined) {
      this.recent.rememberTombstone(tombstone)
      void notices.publishToo(notices.messages.raised(tombstone))
      const token = { tag, jti, ttl: atLeast1(order.jti_ttl), begun }
      steps = await this.#endMembers(members, target, token, inTime)
    }
    const reported = this.#report(all)
    this.#attempted.delete(jti)
    // A session that was ended by its sub has left that index already.
    await Promise.all([before?.confirmed, steps.confirmed, target.options.leave ? undefined : this.leaveSubs(reported)])
    // When the same token arrives twice at once, each attempt reports some of the sessions.
    return steps.hasTakenJti || reported.length > 0 ? reported.map(endedSession) : 'replayed'
  }

  /** Without the sessions that began after the first attempt of an order. */
  async #begunUntil(
    begun_until: number | undefined,
    members: readonly string[],
    keyOf: IndexTarget['keyOf'],
  ): Promise<readonly string[]> {
    if (begun_until === undefined) return members
    const { commands, keys } = this.#parts
    const kept: string[] = []
    for (const chunk of chunksOf(members)) {
      const reads = chunk.members.map((each) => commands.redis.hget(keys.sessionAt(keyOf(each)), 'begun_at'))
      const begun = await commands.deadline()(commands.reply(Promise.all(reads)))
      // An earlier version has stored no time, so its session ends.
      kept.push(...chunk.members.filter((_, n) => Number(begun[n] ?? 0) <= begun_until))
    }
    return kept
  }

  /** Ends the members of an index, in chunks, and takes the `jti` with the last chunk. */
  async #endMembers(
    members: readonly string[],
    { index, keyOf, options, isOneSlot }: IndexTarget,
    { tag, jti, begun, ...token }: TokenUse,
    firstDeadline: Deadline,
  ): Promise<TokenSteps> {
    const { commands } = this.#parts
    const confirmed: Promise<void>[] = []
    let inTime = firstDeadline
    let hasTakenJti = false
    for (const [count, chunk] of chunksOf(members).entries()) {
      // Each further chunk has the whole time, so that thousands of sessions can be ended.
      if (count > 0) inTime = commands.deadline()
      const chunkKeys = chunk.members.map(keyOf)
      const ttl = chunk.isLast ? token.ttl : 0
      if (isOneSlot && this.#scriptsReachAll && chunkKeys.length > 0) {
        const oneStep = { ...options, leave: true, jti: { key: jti, ttl } }
        const ended = await inTime(this.#endInSlot([tag as SidTag, chunkKeys], oneStep))
        confirmed.push(ended.confirmed)
        hasTakenJti = ended.hasTakenJti
      } else {
        const ended = await inTime(this.#end(chunkKeys, { options, until: inTime.until }))
        confirmed.push(ended.confirmed)
        await inTime(Promise.all([begun, ended.acknowledged]))
        hasTakenJti = (await inTime(commands.run('finishEnding', [index, jti], [ttl, ...chunk.members]))) === 1
      }
    }
    return { hasTakenJti, confirmed: Promise.all(confirmed) }
  }

  /** Ends sessions, slot by slot, and notifies all processes. */
  async #end(
    keys: readonly SessionKey[],
    { options, until }: { readonly options: EndingOptions; readonly until: number },
  ): Promise<EndedInRedis> {
    const slots = [...bySlot(keys)]
    const [first, ...others] = slots
    if (first === undefined) return { confirmed: Promise.resolve(), acknowledged: Promise.resolve() }
    if (others.length === 0 && this.#scriptsReachAll) return this.#endInSlot(first, options)
    const writes = slots.map(async ([tag, members]) => {
      const { reply, acknowledged } = await this.#write(tag, 'endSessions', {
        ...this.#endSessionsCall(tag, members, options),
        until,
      })
      this.#remember(tag, reply as EndSessionsReply)
      // In an object, because an async function would wait for a promise that it returns.
      return { acknowledged }
    })
    // Waits for all slots: when one fails, what ended in the others is remembered.
    await Promise.allSettled(writes)
    const acknowledgements = await Promise.all(writes)
    this.recent.remember(keys)
    const { confirmed } = await this.#parts.notices.publishEnded(keys)
    const acknowledged = Promise.all(acknowledgements.map((each) => each.acknowledged))
    acknowledged.catch(() => {})
    return { confirmed, acknowledged }
  }

  /**
   * Whether the messages of scripts reach the processes that the connection for notices reaches.
   * After a failover, that for acknowledged writes may lead to another server for a moment.
   */
  get #scriptsReachAll(): boolean {
    return this.#acknowledged === undefined && this.#parts.commands.publishesEverywhere
  }

  /** Ends sessions of one slot, and notifies all processes in the same step. */
  async #endInSlot(
    [tag, keys]: readonly [SidTag, readonly SessionKey[]],
    options: EndingOptions,
  ): Promise<EndedInRedis & { readonly hasTakenJti: boolean }> {
    const { commands, notices } = this.#parts
    let hasTakenJti = false
    const { confirmed } = await notices.confirmedBy(keys, async (id) => {
      const call = this.#endSessionsCall(tag, keys, options, id)
      const reply = (await commands.run('endSessions', call.keys, call.args)) as EndSessionsReply
      hasTakenJti = reply[1] === 1
      return this.#remember(tag, reply)
    })
    this.recent.remember(keys)
    return { confirmed, acknowledged: Promise.resolve(), hasTakenJti }
  }

  /** Remembers ended sessions until they are reported. Returns the number of receivers. */
  #remember(tag: SidTag, [receivers, , ...found]: EndSessionsReply): number {
    for (const each of endedFrom(tag, found)) this.#unreported.set(each.key, each)
    return receivers
  }

  /** The ended sessions that no other attempt has reported, so that the audit log has each once. */
  #report(keys: readonly SessionKey[]): readonly Ended[] {
    return keys.flatMap((key) => {
      const ended = this.#unreported.get(key)
      this.#unreported.delete(key)
      return ended ?? []
    })
  }

  /** Runs a script in the slot of a hash tag, with acknowledgement by replicas if configured. */
  async #write(
    tag: SidTag | SubTag,
    script: ScriptName,
    write: { readonly keys: readonly string[]; readonly args: readonly (string | number)[]; readonly until: number },
  ): Promise<{ readonly reply: unknown; readonly acknowledged: Promise<void> }> {
    const { commands, endings } = this.#parts
    if (this.#acknowledged === undefined || endings === undefined)
      return { reply: await commands.run(script, write.keys, write.args), acknowledged: Promise.resolve() }
    // At the start and after a failover, one connection may be ready before the other.
    if (commands.redis.status === 'ready') await endings.ready()
    return this.#acknowledged.run(tag, script, write)
  }

  /**
   * Repeats endings that Redis may have lost. The sessions stay in their indexes: a Logout Token
   * whose order is not complete must find them there. Adds entries again that Redis may have lost.
   */
  async #repeat({ keys, tombstones, entries }: Recent): Promise<void> {
    const { commands, keys: places } = this.#parts
    // The tombstones come first: after that, no older sign-in can add a session.
    for (const { members } of chunksOf(tombstones))
      await Promise.all(
        members.map(({ tag, at, ttl }) => commands.run('raiseTombstone', [places.tombstone(tag)], [at, atLeast1(ttl)])),
      )
    const options: EndingOptions = { tombstone_ttl: 0, leave: false }
    for (const { members } of chunksOf(keys))
      await Promise.all(
        [...bySlot(members)].map(([tag, sessions]) => {
          const { keys, args } = this.#endSessionsCall(tag, sessions, options)
          return commands.run('endSessions', keys, args)
        }),
      )
    for (const { members } of chunksOf(entries)) {
      const inTime = commands.deadline()
      const isEntered = await inTime(Promise.all(members.map((entry) => this.enter(entry))))
      const late = members.flatMap(({ key }, n) => (isEntered[n] === true ? [] : [key]))
      if (late.length > 0) await this.#endLate(late, inTime)
    }
  }

  /** Ends sessions that an earlier order did not find. */
  async #endLate(keys: readonly SessionKey[], inTime: Deadline): Promise<void> {
    const { notices } = this.#parts
    // First, because the reply of Redis may be late or lost.
    notices.endedLate({ keys })
    const ending = this.#end(keys, { options: { tombstone_ttl: 0, leave: true }, until: inTime.until })
    const record = () => {
      const sessions = this.#report(keys).map(endedSession)
      if (sessions.length > 0) notices.endedLate({ sessions })
    }
    // Also when it takes longer than this attempt, and when some have ended and others have not.
    ending.then(record, record)
    const { acknowledged } = await inTime(ending)
    await inTime(acknowledged)
  }

  /**
   * Adds a session to the index of its sub, unless the sub was ended since the sign-in began.
   * Returns whether it may stay.
   */
  async enter({ key, subTag, begun_at, until }: Entry): Promise<boolean> {
    if (this.recent.rejects(subTag, begun_at)) return false
    const { commands, keys } = this.#parts
    const remaining = Math.ceil(until - performance.now())
    const places = [keys.subIndex(subTag), keys.tombstone(subTag)]
    return (await commands.run('enterSub', places, [key, remaining, begun_at])) === 1
  }

  /** The keys and arguments of the script `endSessions`. With `id`, its notice is confirmed. */
  #endSessionsCall(tag: SidTag, sessions: readonly SessionKey[], options: EndingOptions, id?: string) {
    const { tombstone_ttl, leave, jti } = options
    const { keys, notices } = this.#parts
    const places = sessions
      .map((key) => keys.session(key))
      .flatMap(({ session, lease, ended }) => [session, lease, ended])
    const notice = notices.messages.ended(sessions, id)
    const args = [notices.channel, notice, tombstone_ttl, leave ? 1 : 0, jti?.ttl ?? 0, ...sessions.map(hashOf)]
    return { keys: [keys.sidIndex(tag), ...places, ...(jti === undefined ? [] : [jti.key])], args }
  }
}

function chunksOf<T>(members: readonly T[]): { readonly members: readonly T[]; readonly isLast: boolean }[] {
  const count = Math.max(1, Math.ceil(members.length / chunkSize))
  return Array.from({ length: count }, (_, n) => ({
    members: members.slice(n * chunkSize, (n + 1) * chunkSize),
    isLast: n === count - 1,
  }))
}

/** Then, for each session, see `endedFrom`. */
type EndSessionsReply = readonly [receivers: number, hasTakenJti: number, ...ended: Buffer[]]

/** The script returns three values for each session: its hash, its sealed bytes and its sub tag. */
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

/** How long the ending of a session is remembered, in ms. */
const rememberedForMs = 2 * 60 * 1000
const maxRemembered = 10_000

/** The pause between two repetitions, in ms. */
const pauseMs = 1_000

/** The entry of a session in the index of its sub. */
interface Entry {
  readonly key: SessionKey
  readonly subTag: SubTag
  readonly begun_at: number
  /** When the session expires at the latest, on the clock of `performance`. */
  readonly until: number
}

/** What Redis may have lost. */
interface Recent {
  readonly keys: readonly SessionKey[]
  readonly tombstones: readonly Tombstone[]
  readonly entries: readonly Entry[]
}

/**
 * The recent endings of all processes. A primary that dies may not have sent its last writes to its
 * replica, so ended sessions may exist again. Each time that writes may be lost, every process
 * repeats the endings that it remembers.
 *
 * In a Cluster, a session and the index of its sub are on different nodes. So the entry may be lost
 * while the session is there, and a logout of the sub would not find it. The process that created
 * the session adds it again; when the sub was ended in between, the session ends.
 */
class RecentEndings {
  readonly #keys = new BoundedMap<SessionKey, true>('recent_endings', maxRemembered, { lifetimeMs: rememberedForMs })
  /** `until` is when Redis would delete the tombstone, on the clock of `performance`. */
  readonly #tombstones = new BoundedMap<SidTag | SubTag, { readonly at: number; readonly until: number }>(
    'recent_tombstones',
    maxRemembered,
    { lifetimeMs: rememberedForMs },
  )
  readonly #entries = new BoundedMap<SessionKey, Entry>('recent_entries', maxRemembered, {
    lifetimeMs: rememberedForMs,
  })
  readonly #end: (recent: Recent) => Promise<unknown>
  readonly #log: Log
  readonly #repeating = new Repeating('recent_endings', () => this.#repeat())

  constructor(end: (recent: Recent) => Promise<unknown>, log: Log) {
    this.#end = end
    this.#log = log
  }

  remember(keys: readonly SessionKey[]): void {
    for (const key of keys) {
      this.#keys.set(key, true)
      this.#entries.delete(key)
    }
  }

  rememberEntry(entry: Entry): void {
    this.#entries.set(entry.key, entry)
  }

  rememberTombstone({ tag, at, ttl }: Tombstone): void {
    const known = this.#tombstones.get(tag)
    const now = performance.now()
    const until = Math.max(now + ttl, known?.until ?? 0)
    this.#tombstones.set(tag, { at: Math.max(at, known?.at ?? 0), until }, { ttl: until - now })
  }

  /**
   * Whether a sign-in that began at this time of the store must not become a session, also when
   * Redis has lost the tombstone.
   */
  rejects(tag: SidTag | SubTag, begun_at: number): boolean {
    const tombstone = this.#tombstones.get(tag)
    return tombstone !== undefined && begun_at <= tombstone.at
  }

  /** Repeats the endings in the background until Redis has accepted them. */
  repeat(): void {
    this.#repeating.wake()
  }

  /** @returns a pause when Redis has not accepted the endings */
  async #repeat(): Promise<number | undefined> {
    const keys = [...this.#keys.keys()]
    const now = performance.now()
    const tombstones = [...this.#tombstones].map(([tag, { at, until }]) => ({ tag, at, ttl: until - now }))
    const entries = [...this.#entries.values()]
    if (keys.length + tombstones.length + entries.length === 0) return undefined
    try {
      await this.#end({ keys, tombstones, entries })
      return undefined
    } catch (error) {
      this.#log.debug('store.endings_not_repeated', { reason: reason(error) })
      return pauseMs
    }
  }

  clear(): void {
    this.#keys.clear()
    this.#tombstones.clear()
    this.#entries.clear()
  }
}
