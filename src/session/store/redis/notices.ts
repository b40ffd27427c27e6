import type { Clock } from '../../../core/clock.ts'
import { reason } from '../../../core/errors.ts'
import type { SessionKey } from '../../../core/names.ts'
import { pauses } from '../../../core/pauses.ts'
import { randomToken } from '../../../core/random.ts'
import type { Log } from '../../../observe/log.ts'
import { type EndingReach, processName } from '../../../observe/processes.ts'
import type { EndedLate, StoreNotice, StoreTime, Tombstone } from '../store.ts'
import { confirmationIn, confirmationMessage, Confirmations, NoticeMessages, parseMessage } from './confirmations.ts'
import type { RedisKeys } from './keys.ts'
import { RedisLosses } from './losses.ts'
import { noticesTag, type RedisConnection } from './redis-connection.ts'
import type { RedisServers } from './servers.ts'

/** How often the subscription is proven to work, in ms. */
const beatIntervalMs = 500

/** How long a proof is valid after its beat was sent, in ms: copies are out of date no longer. */
const proofLastsMs = 1_500

interface Parts extends Pick<RedisServers, 'commands' | 'subscriber'> {
  readonly keys: RedisKeys
  readonly log: Log
  readonly clock: Clock
  /** Called for each tombstone that another process has raised. */
  readonly onTombstone: (tombstone: Tombstone) => void
  /** Called when all processes have confirmed an ending, or the time for that is over. */
  readonly onReached?: ((keys: readonly SessionKey[], reach: EndingReach) => void) | undefined
}

interface Subscription {
  /** A channel that only this subscription uses. */
  readonly beats: string
  /** When the last beat was sent that came back; on the clock of `performance`, in ms. */
  receivedAt: number
  /** The same for the last beat for which the server counted this process as a subscriber. */
  countedAt: number
}

/**
 * The notices between processes, through one channel of one server: in a Cluster, of the node with
 * the slot of {@link noticesTag}. A separate connection receives them.
 *
 * While requests need the proof, a beat is published there every half a second and must come back.
 * Redis delivers to one connection in order, so everything that was published before the beat has
 * been received.
 */
export class RedisNotices {
  readonly channel: string
  /** The name of this process. */
  readonly #from = randomToken(12)
  readonly messages = new NoticeMessages(this.#from)
  readonly #confirmationPrefix: string
  readonly #parts: Parts
  readonly #commands: RedisConnection
  readonly #subscriber: RedisConnection
  readonly #losses: RedisLosses
  readonly #clock: RedisClock
  /** The name of this process for operators. Two processes may have the same host name and pid. */
  readonly #name: string
  /** With each, whether it needs the proof also while the process is idle. */
  readonly #listeners = new Map<(notice: StoreNotice) => void, boolean>()
  readonly #confirmations: Confirmations
  #beating: NodeJS.Timeout | undefined
  /** When {@link isReceiving} was last called; on the clock of `performance`, in ms. */
  #askedAt = performance.now()
  #subscription: Subscription | undefined
  #subscriptionRefused = false
  /** When the last proven beat of the current connection was sent. */
  #provenAt = -Infinity
  /** The same, but not reset when the connection is lost. */
  #receivedUntil = -Infinity
  /** A notice could not be sent. The others must drop all copies as soon as they can be reached. */
  #hasMissedNotice = false
  #isNewerReported = false

  constructor(parts: Parts) {
    const { commands, subscriber, keys, log, clock } = parts
    this.channel = keys.channel('notices')
    this.#confirmationPrefix = keys.channel('ack:')
    this.#parts = parts
    this.#commands = commands
    this.#subscriber = subscriber
    this.#name = `${processName()} (${this.#from.slice(0, 4)})`
    this.#losses = new RedisLosses(commands, log)
    this.#clock = new RedisClock(commands.address, clock, log)
    this.#confirmations = new Confirmations(log)
    subscriber.redis.on('ready', () => void this.#subscribe())
    subscriber.redis.on('close', () => this.#dropSubscription())
    subscriber.redis.on('message', (channel: string, text: string) => {
      if (channel === this.channel) this.#receive(text)
      else if (channel === this.#subscription?.beats) this.#receiveBeat(this.#subscription, Number(text))
      else this.#confirmations.confirm(...confirmationIn(text))
    })
    // Both connections must lead to the same server. After a failover, only a new connection is
    // certain to do so.
    commands.redis.on('close', () => subscriber.renew())
    // A beat that was due before the connection was ready is lost.
    commands.redis.on('ready', () => this.#beat())
    // The old primary may not have sent its last writes to the replica that took its place.
    commands.onTakeover(() => this.#notify({ kind: 'resumed' }))
  }

  /** See `SessionStore.onNotice`. */
  listen(listener: (notice: StoreNotice) => void, isProvenIdle = false): () => void {
    this.#listeners.set(listener, isProvenIdle)
    return () => this.#listeners.delete(listener)
  }

  /** Tells the listeners in this process, which never receive its own notices. */
  endedLate(ended: Partial<Omit<EndedLate, 'kind'>>): void {
    this.#notify({ kind: 'ended_late', keys: [], sessions: [], ...ended })
  }

  isReceiving(): boolean {
    const wasIdle = this.#isIdle
    this.#askedAt = performance.now()
    if (wasIdle) this.#beat()
    return this.#isProven
  }

  get #isProven(): boolean {
    return this.#subscription !== undefined && performance.now() - this.#provenAt <= proofLastsMs
  }

  staleForMs(): number {
    return performance.now() - this.#receivedUntil - proofLastsMs
  }

  /** The time at the server of the notices; throws `ERR_STORE_UNAVAILABLE`. */
  async time(): Promise<StoreTime> {
    return this.#clock.time ?? this.#readTime()
  }

  async #readTime(): Promise<StoreTime> {
    const sentAt = performance.now()
    const time = Number(await this.#commands.run('clock', [this.#parts.keys.epoch(noticesTag)], []))
    this.#clock.take(time, sentAt)
    // Everything before the request happened earlier, and everything after the reply happens later.
    return { earliest: time, latest: time }
  }

  /** Sends a notice that a script has published, where scripts do not reach all processes. */
  async publishToo(text: string): Promise<void> {
    if (!this.#commands.publishesEverywhere) await this.#publishNotice(text).catch(() => {})
  }

  /**
   * Call after scripts have ended sessions: sends the notice to all processes, including this one.
   * @returns a promise that resolves when all of them have dropped the sessions
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when the notice cannot be sent
   */
  publishEnded(keys: readonly SessionKey[]): Promise<{ readonly confirmed: Promise<void> }> {
    return this.confirmedBy(keys, (id) => this.#publishNotice(this.messages.ended(keys, id)))
  }

  /**
   * Runs `publish`, which sends the notice of an ending with this id, and returns the number of
   * receivers. The promise in the result resolves when all of them have confirmed it.
   */
  async confirmedBy(
    keys: readonly SessionKey[],
    publish: (id: string) => Promise<number>,
  ): Promise<{ readonly confirmed: Promise<void> }> {
    const { confirmed } = await this.#confirmations.collect(publish)
    return { confirmed: confirmed.then((reach) => this.#parts.onReached?.(keys, reach)) }
  }

  close(): void {
    this.#dropSubscription()
    this.#confirmations.close()
  }

  async #publishNotice(text: string): Promise<number> {
    try {
      return await this.#publish(this.channel, text)
    } catch (error) {
      this.#hasMissedNotice = true
      throw error
    }
  }

  async #publish(channel: string, text: string): Promise<number> {
    return Number(await this.#commands.run('publishMessage', [this.#parts.keys.epoch(noticesTag)], [channel, text]))
  }

  async #subscribe(): Promise<void> {
    const { redis } = this.#subscriber
    const beats = this.#parts.keys.channel(`beat:${randomToken(12)}`)
    const subscription: Subscription = { beats, receivedAt: -Infinity, countedAt: -Infinity }
    try {
      await redis.subscribe(this.channel, this.#confirmationPrefix + this.#from, beats)
    } catch (error) {
      // After a lost connection the next one subscribes. A refusal by Redis needs another attempt.
      if (redis.status === 'ready') this.#retrySubscribing(error)
      return
    }
    if (redis.status !== 'ready') return
    this.#subscriptionRefused = false
    this.#subscription = subscription
    this.#beat()
  }

  #retrySubscribing(error: unknown): void {
    // Any other error means that the connection was lost or that Redis did not reply in time.
    const isRefusal = error instanceof Error && error.name === 'ReplyError'
    if (isRefusal && !this.#subscriptionRefused)
      this.#parts.log.error('store.notices_refused', {
        store: this.#subscriber.address,
        reason: reason(error),
        hint: 'Allow the channels to the Redis user, as docs/redis.md says. Until then no session is served from memory.',
      })
    this.#subscriptionRefused ||= isRefusal
    setTimeout(() => {
      if (this.#subscription === undefined && this.#subscriber.redis.status === 'ready') void this.#subscribe()
    }, beatIntervalMs).unref()
  }

  /** No request has needed the proof for a while. The next one that needs it causes a beat. */
  get #isIdle(): boolean {
    const isUnasked = performance.now() - this.#askedAt > pauses.proveNoticesMs
    return isUnasked && !this.#hasMissedNotice && ![...this.#listeners.values()].includes(true)
  }

  #beat(): void {
    const subscription = this.#subscription
    clearTimeout(this.#beating)
    if (subscription === undefined) return
    const isIdle = this.#isIdle
    this.#beating = setTimeout(() => this.#beat(), isIdle ? pauses.checkIdleStoreMs : beatIntervalMs).unref()
    // ioredis closes a dead connection when a command gets no reply in time.
    this.#subscriber.redis.ping().catch(() => {})
    // Errors need no handling here: without a reply there is no proof.
    const [notices, ...others] = this.#commands.anchors as readonly [string, ...string[]]
    this.#beatAt(notices, isIdle ? undefined : subscription).catch(() => {})
    for (const anchor of others) this.#beatAt(anchor).catch(() => {})
    void this.#losses.hasEvicted().then((hasEvicted) => hasEvicted && this.#notify({ kind: 'resumed' }))
  }

  async #beatAt(anchor: string, subscription?: Subscription): Promise<void> {
    const sentAt = performance.now()
    const args = [randomToken(12), subscription?.beats ?? '', sentAt]
    const reply = await this.#commands.run('beat', [this.#parts.keys.epoch(anchor)], args)
    const [receivers, epoch, time] = reply as [number, Buffer, Buffer]
    if (anchor === noticesTag) this.#clock.take(Number(time), sentAt)
    if (this.#losses.hasLostKeys(anchor, epoch.toString())) this.#notify({ kind: 'resumed' })
    if (subscription === undefined || subscription !== this.#subscription) return
    if (receivers > 0) this.#prove(subscription, { countedAt: sentAt })
    else {
      // The subscription is at another server, which has been replaced, or has lost the slot.
      this.#dropSubscription()
      this.#subscriber.renew()
    }
  }

  #receiveBeat(subscription: Subscription, sentAt: number): void {
    this.#prove(subscription, { receivedAt: sentAt })
    if (!this.#hasMissedNotice || !this.#isProven) return
    this.#hasMissedNotice = false
    this.#publishNotice(this.messages.missed).catch(() => {})
  }

  /** A beat is a proof when the server counted this process, and the beat came back. */
  #prove(subscription: Subscription, seen: Partial<Subscription>): void {
    Object.assign(subscription, seen)
    const at = Math.min(subscription.receivedAt, subscription.countedAt)
    if (at <= this.#provenAt || performance.now() - at > proofLastsMs) return
    if (!this.#isProven) this.#notify({ kind: 'resumed' })
    this.#provenAt = this.#receivedUntil = at
  }

  #dropSubscription(): void {
    clearTimeout(this.#beating)
    this.#subscription = undefined
    this.#provenAt = -Infinity
  }

  #receive(text: string): void {
    const message = parseMessage(text)
    if (message?.from === this.#from) {
      if (message.id !== undefined) this.#confirmations.confirm(message.id, this.#name)
      return
    }
    if (message?.tombstone !== undefined) {
      this.#parts.onTombstone(message.tombstone)
      this.#notify({ kind: 'logout_order', tombstone: message.tombstone })
      return
    }
    // An unknown message of a newer version may mean that any session has ended.
    if (message?.isNewer === true) this.#reportNewer()
    const isHandled = this.#notify(message?.notice ?? { kind: 'resumed' })
    if (!isHandled || message?.id === undefined) return
    const confirmation = confirmationMessage(message.id, message.wantsName ? this.#name : undefined)
    this.#publish(this.#confirmationPrefix + message.from, confirmation).catch(() => {})
  }

  #reportNewer(): void {
    if (!this.#isNewerReported)
      this.#parts.log.warn('store.newer_format', {
        kind: 'notice',
        hint: 'A newer version of Gatehouse sends notices that this version does not know. Each of them empties the memory of this process, so all sessions are read from Redis again. Finish the upgrade.',
      })
    this.#isNewerReported = true
  }

  /** @returns `false` when a listener has thrown an error */
  #notify(notice: StoreNotice): boolean {
    let isHandled = true
    for (const listener of this.#listeners.keys())
      try {
        listener(notice)
      } catch (error) {
        isHandled = false
        this.#parts.log.error('store.notice_failed', { kind: notice.kind, reason: reason(error) })
      }
    return isHandled
  }
}

/** How long a sample of the time in Redis is used, in ms: the clocks drift little in this time. */
const sampleLastsMs = 5_000

/** A sample whose reply took longer than this, in ms, is too imprecise and is dropped. */
const preciseMs = 100

/** The smallest difference between the clocks that is logged, in ms. */
const noticeableMs = 1_000

/** The time of Redis as this process knows it by each beat, so a sign-in need not query it. */
class RedisClock {
  readonly #address: string
  readonly #clock: Clock
  readonly #log: Log
  #sample = { time: 0, sentAt: -Infinity, receivedAt: -Infinity }
  #isOff = false

  constructor(address: string, clock: Clock, log: Log) {
    this.#address = address
    this.#clock = clock
    this.#log = log
  }

  /**
   * Takes a sample: the time in Redis in ms since the epoch, and when it was asked, by
   * `performance`.
   */
  take(time: number, sentAt: number): void {
    const receivedAt = performance.now()
    if (receivedAt - sentAt <= preciseMs) this.#sample = { time, sentAt, receivedAt }
    const now = this.#clock.now()
    // Redis read its clock at some time between the request and the response.
    this.#compare(Math.max(0, time - now, now - time - (receivedAt - sentAt)), now > time)
  }

  /** `undefined` when there is no recent sample, so that Redis must be queried. */
  get time(): StoreTime | undefined {
    const { time, sentAt, receivedAt } = this.#sample
    const now = performance.now()
    if (now - sentAt > sampleLastsMs) return undefined
    return { earliest: Math.floor(time + now - receivedAt), latest: Math.ceil(time + now - sentAt) }
  }

  #compare(differenceMs: number, isAhead: boolean): void {
    const isOff = differenceMs >= noticeableMs
    if (isOff === this.#isOff) return
    this.#isOff = isOff
    if (isOff)
      this.#log.warn('store.clock_differs', {
        store: this.#address,
        seconds: Math.round(differenceMs / 100) / 10,
        hint: `The clock of this machine is ${isAhead ? 'ahead of' : 'behind'} the clock of Redis. Synchronize all clocks by NTP.`,
      })
    else this.#log.info('store.clock_agrees', { store: this.#address })
  }
}
