import type { SessionKey } from '../core/names.ts'
import { reason } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import type { Log } from '../observe/log.ts'
import type { RedisConnection } from './redis-connection.ts'
import type { StoreNotice } from './store.ts'

/** How often the subscription is proven alive, in ms. */
const pingInterval = 500

/** How long a proof counts, from when its ping was sent, in ms: a copy may be this much too old, and not more. */
const proofLasts = 1_500

/** How long an ending waits for the other processes to confirm, in ms. A process that cannot, for it hangs, is bound by `proofLasts`. */
const confirmationTimeout = 250

/** Which endings others confirm: the text of a notice and the name that its confirmations carry. */
export interface Announcement {
  readonly id: string
  readonly text: string
}

interface Confirmations {
  confirmed: number
  /** How many processes were told; unknown until Redis has answered, which a confirmation may outrun. */
  told: number
  readonly enough: () => void
}

/**
 * What the processes tell each other, over one channel and a connection of its own for listening. Redis answers a connection in
 * order, so an answered ping proves that all that was published before the ping was sent has been heard.
 */
export class RedisNotices {
  readonly channel: string
  readonly #from = randomToken(12)
  readonly #confirmationPrefix: string
  readonly #commands: RedisConnection
  readonly #subscriber: RedisConnection
  readonly #log: Log
  readonly #listeners: ((notice: StoreNotice) => void)[] = []
  readonly #awaited = new Map<string, Confirmations>()
  #pinging: NodeJS.Timeout | undefined
  #subscription: object | undefined
  #subscriptionRefused = false
  #provenAt = -Infinity

  constructor(commands: RedisConnection, subscriber: RedisConnection, keyPrefix: string, log: Log) {
    this.channel = `${keyPrefix}notices`
    this.#confirmationPrefix = `${keyPrefix}ack:`
    this.#commands = commands
    this.#subscriber = subscriber
    this.#log = log
    subscriber.redis.on('ready', () => void this.#subscribe())
    subscriber.redis.on('close', () => this.#lost())
    subscriber.redis.on('message', (channel: string, text: string) => {
      if (channel === this.channel) this.#heard(text)
      else this.#confirmed(text)
    })
    // Both have to lead to the same server, and after a failover only a new connection is certain to.
    commands.redis.on('close', () => subscriber.renew())
  }

  listen(listener: (notice: StoreNotice) => void): void {
    this.#listeners.push(listener)
  }

  hears(): boolean {
    return this.#subscription !== undefined && performance.now() - this.#provenAt <= proofLasts
  }

  changed(key: SessionKey): string {
    return JSON.stringify({ from: this.#from, kind: 'changed', key })
  }

  ended(keys: readonly SessionKey[]): Announcement {
    const id = randomToken(9)
    return { id, text: JSON.stringify({ from: this.#from, kind: 'ended', id, keys }) }
  }

  /**
   * Sends an ending, by a script that publishes the announcement and answers how many processes heard it (we are one of them,
   * while we listen). `confirmed` resolves when all of them have dropped the sessions.
   */
  async tell<T>(
    announcement: Announcement,
    send: () => Promise<{ readonly told: number; readonly answer: T }>,
  ): Promise<{ readonly answer: T; readonly confirmed: Promise<void> }> {
    const { promise, resolve } = withResolvers()
    const confirmations: Confirmations = { confirmed: 0, told: Infinity, enough: resolve }
    this.#awaited.set(announcement.id, confirmations)
    try {
      const { told, answer } = await send()
      confirmations.told = told
      return { answer, confirmed: this.#wait(announcement.id, confirmations, promise) }
    } catch (error) {
      this.#awaited.delete(announcement.id)
      throw error
    }
  }

  close(): void {
    this.#lost()
    for (const { enough } of this.#awaited.values()) enough()
  }

  async #wait(id: string, confirmations: Confirmations, enough: Promise<void>): Promise<void> {
    if (confirmations.confirmed < confirmations.told) {
      const late = setTimeout(() => {
        const { confirmed, told } = confirmations
        this.#log.warn('not every process confirmed in time that it dropped ended sessions', { confirmed, told })
        confirmations.enough()
      }, confirmationTimeout)
      await enough
      clearTimeout(late)
    }
    this.#awaited.delete(id)
  }

  async #subscribe(): Promise<void> {
    const subscription = {}
    try {
      await this.#subscriber.redis.subscribe(this.channel, this.#confirmationPrefix + this.#from)
    } catch (error) {
      // When the connection broke, the next one subscribes. When Redis refused, trying again has to wait for it.
      if (this.#subscriber.redis.status === 'ready') this.#refused(error)
      return
    }
    if (this.#subscriber.redis.status !== 'ready') return
    this.#subscriptionRefused = false
    this.#subscription = subscription
    clearInterval(this.#pinging)
    this.#pinging = setInterval(() => void this.#prove(subscription), pingInterval).unref()
    await this.#prove(subscription)
  }

  #refused(error: unknown): void {
    if (!this.#subscriptionRefused)
      this.#log.error('notices of other processes cannot be heard, so nothing is served from memory', {
        store: this.#subscriber.address,
        reason: reason(error),
      })
    this.#subscriptionRefused = true
    setTimeout(() => {
      if (this.#subscription === undefined && this.#subscriber.redis.status === 'ready') void this.#subscribe()
    }, pingInterval).unref()
  }

  async #prove(subscription: object): Promise<void> {
    const sentAt = performance.now()
    try {
      await this.#subscriber.redis.ping()
    } catch {
      return
    }
    if (this.#subscription !== subscription || performance.now() - sentAt > proofLasts) return
    if (!this.hears()) this.#give({ kind: 'resumed' })
    this.#provenAt = Math.max(this.#provenAt, sentAt)
  }

  #lost(): void {
    clearInterval(this.#pinging)
    this.#subscription = undefined
    this.#provenAt = -Infinity
  }

  #heard(text: string): void {
    const message = parse(text)
    if (message?.from === this.#from) {
      if (message.id !== undefined) this.#confirmed(message.id)
      return
    }
    // What a newer version says and we do not understand may be that anything ended.
    const told = this.#give(message?.notice ?? { kind: 'resumed' })
    if (!told || message?.id === undefined) return
    this.#commands.redis.publish(this.#confirmationPrefix + message.from, message.id).catch(() => {})
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
        this.#log.error('a notice of another process could not be acted on', {
          kind: notice.kind,
          reason: reason(error),
        })
      }
    return taken
  }
}

interface Message {
  readonly from: string
  readonly id: string | undefined
  readonly notice: StoreNotice | undefined
}

function parse(text: string): Message | undefined {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof message !== 'object' || message === null) return undefined
  const { from, id, kind, key, keys } = message as Record<string, unknown>
  if (typeof from !== 'string') return undefined
  return { from, id: typeof id === 'string' ? id : undefined, notice: noticeOf(kind, key, keys) }
}

function noticeOf(kind: unknown, key: unknown, keys: unknown): StoreNotice | undefined {
  if (kind === 'changed' && typeof key === 'string') return { kind, key: key as SessionKey }
  if (kind === 'ended' && Array.isArray(keys)) return { kind, keys: keys as SessionKey[] }
  return undefined
}

// Promise.withResolvers came with Node.js 22.
function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve }
}
