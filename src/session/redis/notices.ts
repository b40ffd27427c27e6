import type { Clock } from '../../core/clock.ts'
import { reason } from '../../core/errors.ts'
import type { SessionKey, SidTag, SubTag } from '../../core/names.ts'
import { randomToken } from '../../core/random.ts'
import type { Log } from '../../observe/log.ts'
import type { StoreNotice, StoreTime, Tombstone } from '../store.ts'
import { RedisClock } from './clock.ts'
import { meetingTag, type RedisConnection } from './connection.ts'
import type { RedisKeys } from './keys.ts'
import { RedisLosses } from './losses.ts'

/** How often the subscription is proven alive, in ms. */
const beatInterval = 500

/**
 * How long a proof counts, from when its beat was sent, in ms: a copy may be this much too old, and
 * not more.
 */
const proofLasts = 1_500

/**
 * How long an ending waits for the other processes to confirm, in ms. A process that cannot, for it
 * hangs, is bound by `proofLasts`.
 */
const confirmationTimeout = 250

interface Confirmations {
  confirmed: number
  /**
   * How many processes were told; unknown until Redis has answered, which a confirmation may
   * outrun.
   */
  told: number
  readonly enough: () => void
}

interface Parts {
  readonly log: Log
  readonly clock: Clock
  /** Is called for each tombstone that another process has raised. */
  readonly onTombstone: (tombstone: Tombstone) => void
}

/** Our ears at one server, for as long as one connection lasts. */
interface Subscription {
  /** A channel that nobody else has. */
  readonly beats: string
  /** When the last beat was sent that came back to us; ms on the clock of `performance`. */
  heardAt: number
  /**
   * When the last beat was sent at which the server that we write to had us among its listeners.
   */
  toldAt: number
}

/**
 * What the processes tell each other, over one channel at one server (in a Cluster at the node that
 * holds a certain slot) and a connection of its own for listening. A beat is published there every
 * half a second and has to come back: what a server sends down one connection arrives in order, so
 * all that was published before the beat has been heard.
 */
export class RedisNotices {
  readonly channel: string
  readonly #from = randomToken(12)
  readonly #confirmationPrefix: string
  readonly #keys: RedisKeys
  readonly #commands: RedisConnection
  readonly #subscriber: RedisConnection
  readonly #losses: RedisLosses
  readonly #clock: RedisClock
  readonly #log: Log
  readonly #onTombstone: (tombstone: Tombstone) => void
  readonly #listeners = new Set<(notice: StoreNotice) => void>()
  readonly #awaited = new Map<string, Confirmations>()
  #beating: NodeJS.Timeout | undefined
  #subscription: Subscription | undefined
  #subscriptionRefused = false
  #provenAt = -Infinity
  /** The same, also of connections that are lost. */
  #heardUntil = -Infinity
  /**
   * Something could not be told: when it can again, all are told that anything may have happened.
   */
  #owesNotice = false

  constructor(commands: RedisConnection, subscriber: RedisConnection, keys: RedisKeys, parts: Parts) {
    this.channel = keys.channel('notices')
    this.#confirmationPrefix = keys.channel('ack:')
    this.#keys = keys
    this.#commands = commands
    this.#subscriber = subscriber
    const { log, clock, onTombstone } = parts
    this.#onTombstone = onTombstone
    this.#losses = new RedisLosses(commands, log)
    this.#clock = new RedisClock(commands.address, clock, log)
    this.#log = log
    subscriber.redis.on('ready', () => void this.#subscribe())
    subscriber.redis.on('close', () => this.#lost())
    subscriber.redis.on('message', (channel: string, text: string) => {
      if (channel === this.channel) this.#heard(text)
      else if (channel === this.#subscription?.beats) this.#heardBeat(this.#subscription, Number(text))
      else this.#confirmed(text)
    })
    // Both have to lead to the same server, and after a failover only a new connection is certain
    // to.
    commands.redis.on('close', () => subscriber.renew())
    // Whatever beat was due before that got lost.
    commands.redis.on('ready', () => this.#beat())
    // Its last writes may not have been sent on to the other.
    commands.onTakeover(() => this.#give({ kind: 'resumed' }))
  }

  listen(listener: (notice: StoreNotice) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  hears(): boolean {
    return this.#subscription !== undefined && performance.now() - this.#provenAt <= proofLasts
  }

  silentFor(): number {
    return performance.now() - this.#heardUntil - proofLasts
  }

  /**
   * The time at the server where the processes meet. @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async time(): Promise<StoreTime> {
    return this.#clock.time ?? this.#askTime()
  }

  async #askTime(): Promise<StoreTime> {
    const sentAt = performance.now()
    const time = Number(await this.#commands.run('clock', [this.#keys.epoch(meetingTag)], []))
    this.#clock.take(time, sentAt)
    // Whatever was there before the question is no later, and whatever comes after the answer is no
    // earlier.
    return { earliest: time, latest: time }
  }

  /** What a script publishes when it has changed a session. */
  changed(key: SessionKey): string {
    return JSON.stringify({ from: this.#from, kind: 'changed', key })
  }

  /**
   * What a script publishes when it ends sessions. With an `id`, all who hear it confirm that they
   * have dropped them.
   */
  ended(keys: readonly SessionKey[], id?: string): string {
    return JSON.stringify({ from: this.#from, kind: 'ended', id, keys })
  }

  /** What a script publishes when it raises a tombstone. */
  raised(tombstone: Tombstone): string {
    return JSON.stringify({ from: this.#from, kind: 'ended', keys: [], tombstone })
  }

  /** After a script has raised a tombstone: makes sure that the others hear of it. */
  async tellRaised(tombstone: Tombstone): Promise<void> {
    if (!this.#commands.publishesEverywhere) await this.#announce(this.raised(tombstone)).catch(() => {})
  }

  /** After a script has changed a session: makes sure that the others hear of it, now or later. */
  async tellChanged(key: SessionKey): Promise<void> {
    if (!this.#commands.publishesEverywhere) await this.#announce(this.changed(key)).catch(() => {})
  }

  /**
   * After scripts have ended sessions: tells all who listen (we are one of them, while we do).
   * `confirmed` resolves when all of them have dropped the sessions. Rejects when they cannot be
   * told.
   */
  async tellEnded(keys: readonly SessionKey[]): Promise<{ readonly confirmed: Promise<void> }> {
    const id = randomToken(9)
    const { promise, resolve } = withResolvers()
    const confirmations: Confirmations = { confirmed: 0, told: Infinity, enough: resolve }
    this.#awaited.set(id, confirmations)
    try {
      confirmations.told = await this.#announce(this.ended(keys, id))
    } catch (error) {
      this.#awaited.delete(id)
      throw error
    }
    return { confirmed: this.#wait(id, confirmations, promise) }
  }

  close(): void {
    this.#lost()
    for (const { enough } of this.#awaited.values()) enough()
  }

  async #announce(text: string): Promise<number> {
    try {
      return await this.#publish(this.channel, text)
    } catch (error) {
      this.#owesNotice = true
      throw error
    }
  }

  async #publish(channel: string, text: string): Promise<number> {
    return Number(await this.#commands.run('announce', [this.#keys.epoch(meetingTag)], [channel, text]))
  }

  async #wait(id: string, confirmations: Confirmations, enough: Promise<void>): Promise<void> {
    if (confirmations.confirmed < confirmations.told) {
      const late = setTimeout(() => {
        const { confirmed, told } = confirmations
        this.#log.warn('store.endings_not_confirmed', { confirmed, told })
        confirmations.enough()
      }, confirmationTimeout)
      await enough
      clearTimeout(late)
    }
    this.#awaited.delete(id)
  }

  async #subscribe(): Promise<void> {
    const { redis } = this.#subscriber
    const beats = this.#keys.channel(`beat:${randomToken(12)}`)
    const subscription: Subscription = { beats, heardAt: -Infinity, toldAt: -Infinity }
    try {
      await redis.subscribe(this.channel, this.#confirmationPrefix + this.#from, beats)
    } catch (error) {
      // When the connection broke, the next one subscribes. When Redis refused, trying again has to
      // wait for it.
      if (redis.status === 'ready') this.#refused(error)
      return
    }
    if (redis.status !== 'ready') return
    this.#subscriptionRefused = false
    this.#subscription = subscription
    clearInterval(this.#beating)
    this.#beating = setInterval(() => this.#beat(), beatInterval).unref()
    this.#beat()
  }

  #refused(error: unknown): void {
    // Anything else is no word of Redis: the connection broke, or nothing came in time.
    const isRefusal = error instanceof Error && error.name === 'ReplyError'
    if (isRefusal && !this.#subscriptionRefused)
      this.#log.error('store.notices_refused', {
        store: this.#subscriber.address,
        reason: reason(error),
        hint: 'what other processes end cannot be heard, so nothing is served from memory',
      })
    this.#subscriptionRefused ||= isRefusal
    setTimeout(() => {
      if (this.#subscription === undefined && this.#subscriber.redis.status === 'ready') void this.#subscribe()
    }, beatInterval).unref()
  }

  #beat(): void {
    const subscription = this.#subscription
    if (subscription === undefined) return
    // What is not answered makes ioredis give up a connection that is dead and does not know it.
    this.#subscriber.redis.ping().catch(() => {})
    // The store answers for itself: when it is away, the missing proof says so.
    const [meeting, ...others] = this.#commands.anchors as readonly [string, ...string[]]
    this.#beatAt(meeting, subscription).catch(() => {})
    for (const anchor of others) this.#beatAt(anchor).catch(() => {})
    void this.#losses.hasEvicted().then((hasEvicted) => hasEvicted && this.#give({ kind: 'resumed' }))
  }

  async #beatAt(anchor: string, subscription?: Subscription): Promise<void> {
    const sentAt = performance.now()
    const args = [randomToken(12), subscription?.beats ?? '', sentAt]
    const answer = await this.#commands.run('beat', [this.#keys.epoch(anchor)], args)
    const [told, epoch, time] = answer as [number, Buffer, Buffer]
    if (anchor === meetingTag) this.#clock.take(Number(time), sentAt)
    if (this.#losses.isAnother(anchor, epoch.toString())) this.#give({ kind: 'resumed' })
    if (subscription === undefined || subscription !== this.#subscription) return
    if (told > 0) this.#prove(subscription, { toldAt: sentAt })
    else {
      // Our ears are at another server: this one took its place, or the slot.
      this.#lost()
      this.#subscriber.renew()
    }
  }

  #heardBeat(subscription: Subscription, sentAt: number): void {
    this.#prove(subscription, { heardAt: sentAt })
    if (!this.#owesNotice || !this.hears()) return
    this.#owesNotice = false
    this.#announce(JSON.stringify({ from: this.#from, kind: 'anything' })).catch(() => {})
  }

  /** A beat counts when the server had us among its listeners and we have heard it. */
  #prove(subscription: Subscription, seen: Partial<Subscription>): void {
    Object.assign(subscription, seen)
    const at = Math.min(subscription.heardAt, subscription.toldAt)
    if (at <= this.#provenAt || performance.now() - at > proofLasts) return
    if (!this.hears()) this.#give({ kind: 'resumed' })
    this.#provenAt = this.#heardUntil = at
  }

  #lost(): void {
    clearInterval(this.#beating)
    this.#subscription = undefined
    this.#provenAt = -Infinity
  }

  #heard(text: string): void {
    const message = parse(text)
    if (message?.from === this.#from) {
      if (message.id !== undefined) this.#confirmed(message.id)
      return
    }
    if (message?.tombstone !== undefined) {
      this.#onTombstone(message.tombstone)
      return
    }
    // What a newer version says and we do not understand may be that anything ended.
    const told = this.#give(message?.notice ?? { kind: 'resumed' })
    if (!told || message?.id === undefined) return
    this.#publish(this.#confirmationPrefix + message.from, message.id).catch(() => {})
  }

  #confirmed(id: string): void {
    const confirmations = this.#awaited.get(id)
    if (confirmations === undefined) return
    confirmations.confirmed += 1
    if (confirmations.confirmed >= confirmations.told) confirmations.enough()
  }

  /** Whether all listeners took it. */
  #give(notice: StoreNotice): boolean {
    let taken = true
    for (const listener of this.#listeners)
      try {
        listener(notice)
      } catch (error) {
        taken = false
        this.#log.error('store.notice_failed', { kind: notice.kind, reason: reason(error) })
      }
    return taken
  }
}

interface Message {
  readonly from: string
  readonly id: string | undefined
  readonly notice: StoreNotice | undefined
  readonly tombstone: Tombstone | undefined
}

function parse(text: string): Message | undefined {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof message !== 'object' || message === null) return undefined
  const { from, id, kind, key, keys, tombstone } = message as Record<string, unknown>
  if (typeof from !== 'string') return undefined
  return {
    from,
    id: typeof id === 'string' ? id : undefined,
    notice: noticeOf(kind, key, keys),
    tombstone: tombstoneOf(tombstone),
  }
}

function noticeOf(kind: unknown, key: unknown, keys: unknown): StoreNotice | undefined {
  if (kind === 'changed' && typeof key === 'string') return { kind, key: key as SessionKey }
  if (kind === 'ended' && Array.isArray(keys)) return { kind, keys: keys as SessionKey[] }
  return undefined
}

function tombstoneOf(written: unknown): Tombstone | undefined {
  if (typeof written !== 'object' || written === null) return undefined
  const { tag, at, ttl } = written as Record<string, unknown>
  if (typeof tag !== 'string' || typeof at !== 'number' || typeof ttl !== 'number') return undefined
  return { tag: tag as SidTag | SubTag, at, ttl }
}

// Promise.withResolvers came with Node.js 22.
function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve }
}
