import { setTimeout as wait } from 'node:timers/promises'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { isShared } from '../config/model/session.ts'
import type { SessionKey } from '../core/names.ts'
import { pauses } from '../core/pauses.ts'
import type { Log } from '../observe/log.ts'
import type { Upstreams } from '../proxy/upstream.ts'
import { audienceOf } from '../session/record/record.ts'
import type { SessionStore } from '../session/store/store.ts'
import { ExchangedTokens } from '../tokens/exchanged-tokens.ts'
import { type EndedToken, Revocations } from '../tokens/revocations.ts'
import { createParts, type GenerationParts, type SharedParts } from './generation-parts.ts'
import { Generation } from './generation.ts'
import { reloadable } from './reloadable.ts'

/** How many earlier generations may be closing. A further reload waits for one of them. */
const maxRetiring = 4

/**
 * The generation that serves requests, and earlier ones until their last requests have ended. A
 * reload builds the next generation completely before it replaces the current one.
 */
export class Generations {
  readonly #parts: SharedParts & { readonly exchangedTokens: ExchangedTokens }
  /** By audience. They outlive a reload, as the tokens do. */
  readonly #revocations = new Map<string, Revocations>()
  #config: GatewayConfig
  #current: Generation
  readonly #retiring = new Map<Generation, Promise<void>>()
  /** Of earlier generations: their connections stay open until their exchanges have ended. */
  readonly #earlierUpstreams = new Set<Upstreams>()
  #lastReload: Promise<unknown> = Promise.resolve()
  #isClosing = false

  /** Builds the first generation. */
  constructor(config: GatewayConfig, parts: SharedParts) {
    this.#config = config
    const revoke = (audience: string, tokens: readonly EndedToken[]) => this.#revocationsAt(audience).add(tokens)
    this.#parts = { ...parts, exchangedTokens: new ExchangedTokens({ ...parts, revoke }) }
    this.#current = this.#create(config)
  }

  /** The configuration of the current generation. */
  get config(): GatewayConfig {
    return this.#config
  }

  /** What serves the requests from now on. */
  readonly handlers = (): Generation['handlers'] => this.#current.handlers

  get current(): Generation {
    return this.#current
  }

  /** Whether the gateway is shutting down. */
  get isClosing(): boolean {
    return this.#isClosing
  }

  /**
   * Replaces the current generation. Concurrent reloads take effect in the order of their calls.
   * @returns the settings that differ but take effect at the next start only
   */
  reload(config: GatewayConfig): Promise<readonly string[]> {
    const reload = this.#lastReload.then(() => this.#replace(config))
    this.#lastReload = reload.catch(() => {})
    return reload
  }

  /** From now on reloads have no effect, and the gateway is not ready. */
  beginClosing(): void {
    this.#isClosing = true
  }

  /** Closes all generations. Their requests have ended, or are ended with their connections. */
  async close(): Promise<void> {
    const end = wait(this.#config.shutdown.drainTimeoutMs, undefined, { ref: false })
    await Promise.all([...this.#revocations.values()].map((revocations) => revocations.finish(end)))
    await Promise.all([this.#current, ...this.#retiring.keys()].map((generation) => generation.close()))
    await Promise.all([...this.#earlierUpstreams].map((upstreams) => upstreams.destroy()))
  }

  async #replace(config: GatewayConfig): Promise<readonly string[]> {
    // A replaced generation stays in memory for seconds, so frequent reloads are slowed down.
    if (this.#retiring.size >= maxRetiring) await Promise.race(this.#retiring.values())
    const { config: next, needRestart } = reloadable(this.#config, config)
    const successor = this.#create(next)
    const predecessor = this.#current
    const { realms, signingKeys, sessions } = successor.parts
    signingKeys.takeOver(predecessor.parts.signingKeys)
    realms.takeOverKeys(predecessor.parts.realms)
    // Without this wait, people who sign in now would wait for the discovery of the provider.
    const isReady = () => realms.isKnown && signingKeys.isReady
    await waitUntil(async () => this.#isClosing || isReady(), pauses.waitForDependenciesMs)
    if (this.#isClosing) {
      await successor.close()
      return []
    }
    const keepsValid = keepsSessionsValid(this.#config, next)
    if (keepsValid) sessions.takeOver(predecessor.parts.sessions)
    if (isShared(next.session.store)) this.#parts.store.renewCredentials?.(next.session.store)
    this.#config = next
    this.#current = successor
    if (!keepsValid) successor.checkStreams()
    this.#retire(predecessor)
    return needRestart
  }

  /** What revokes tokens at the provider of an audience, by the current configuration. */
  #revocationsAt(audience: string): Revocations {
    const provider = () => this.#current.parts.realms.all.find((realm) => realm.audience === audience)?.provider
    const revocations = this.#revocations.get(audience) ?? new Revocations({ ...this.#parts, provider })
    this.#revocations.set(audience, revocations)
    return revocations
  }

  #create(config: GatewayConfig): Generation {
    const onActivity = (session: SessionKey) => void this.#current.parts.sessions.find(session).catch(() => {})
    return new Generation(config, createParts(config, this.#parts, onActivity))
  }

  #retire(generation: Generation): void {
    const { upstreams } = generation.parts
    const retired = generation.retire().finally(() => {
      this.#retiring.delete(generation)
      this.#earlierUpstreams.add(upstreams)
      void upstreams
        .close()
        .catch(() => {})
        .finally(() => this.#earlierUpstreams.delete(upstreams))
    })
    this.#retiring.set(generation, retired)
  }
}

/** Whether the sessions of one configuration are valid under another one. */
function keepsSessionsValid(one: GatewayConfig, other: GatewayConfig): boolean {
  const keys = other.session.keys.map((key) => key.toString('base64'))
  const audiences = other.providers.map(audienceOf)
  return (
    one.providers.every((provider) => audiences.includes(audienceOf(provider))) &&
    one.session.keys.every((key) => keys.includes(key.toString('base64')))
  )
}

const pollMs = 20

/** Whether the store and all providers were reachable when the gateway began to serve. */
export interface FoundAtStart {
  readonly store: boolean
  readonly provider: boolean
}

/** Waits for Redis and the providers, so that no request fails because all started together. */
export async function waitForDependencies(
  store: Pick<SessionStore, 'ping'>,
  { realms, signingKeys }: Pick<GenerationParts, 'realms' | 'signingKeys'>,
  log: Log,
): Promise<FoundAtStart> {
  const isStoreReachable = () =>
    store.ping().then(
      () => true,
      () => false,
    )
  const [foundStore, foundProvider] = await Promise.all([
    waitUntil(isStoreReachable, pauses.waitForDependenciesMs),
    waitUntil(async () => realms.isKnown, pauses.waitForDependenciesMs),
    waitUntil(async () => signingKeys.isReady, pauses.waitForDependenciesMs),
  ])
  if (!foundStore)
    log.warn('store.not_there_yet', { hint: 'Pages that need a session get 503 until the store is reachable.' })
  return { store: foundStore, provider: foundProvider }
}

/**
 * Polls a condition.
 * @returns whether it was true within `limitMs`
 */
async function waitUntil(condition: () => Promise<boolean>, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs
  const timeout = wait(limitMs, false, { ref: false })
  while (!(await Promise.race([condition(), timeout]))) {
    if (performance.now() >= end) return false
    await wait(pollMs)
  }
  return true
}
