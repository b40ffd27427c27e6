import type { UnaryMethod } from '../check-requests/grpc.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { SessionKey } from '../core/names.ts'
import { createRouteTable } from '../gate/rules/route-table.ts'
import { TrustedProxies } from '../http/forwarded.ts'
import type { SigningKeys } from '../identity/signed/signing-keys.ts'
import type { ListenerHandlers } from '../listener/listener.ts'
import type { Log } from '../observe/log.ts'
import { Upstreams } from '../proxy/upstream.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { Sessions } from '../session/live/sessions.ts'
import { createHandlers, type Handlers } from './handlers.ts'
import type { AllLogoutCalls } from './logout-calls.ts'
import type { Realms } from './realms.ts'
import { createSessionParts, type SessionParts } from './session-parts.ts'
import type { SharedParts } from './shared-parts.ts'
import { runInOrder } from './shutdown.ts'
import { SignalReceivers } from './signal-receivers.ts'
import { type LiveSessionsWatch, watchLiveSessions } from './watch-live-sessions.ts'

export interface GenerationParts extends SharedParts {
  /** See `HandlersParts`. */
  readonly onActivity: (session: SessionKey) => void
}

/** Builds a generation, and starts the discovery of its providers. */
export async function createGeneration(config: GatewayConfig, shared: GenerationParts): Promise<Generation> {
  const routes = createRouteTable(config.upstreams)
  const trusted = new TrustedProxies(config.trustedProxies)
  const upstreams = new Upstreams(config.upstreams, {
    isTracing: shared.tracer !== undefined,
    reservedPrefix: config.reservedPrefix,
  })
  const sessionParts = createSessionParts(config, { ...shared, upstreams, routes })
  const handlers = await createHandlers(config, { ...shared, ...sessionParts, routes, upstreams, trusted })
  const generation = new Generation(config, shared, { ...sessionParts, ...handlers, upstreams, trusted })
  generation.start()
  return generation
}

interface OwnParts extends SessionParts, Handlers {
  readonly upstreams: Upstreams
  readonly trusted: TrustedProxies
}

/** Everything that serves requests by one configuration. A reload replaces it as a whole. */
export class Generation {
  readonly handlers: ListenerHandlers
  readonly sessions: Sessions
  readonly endings: SessionEndings
  readonly realms: Realms
  readonly signingKeys: SigningKeys
  readonly signalReceivers: SignalReceivers
  readonly trusted: TrustedProxies
  /** Responds to a check of Envoy over gRPC. */
  readonly check: UnaryMethod
  /** Stays open after {@link Generation.retire}, because an exchange has no time limit. */
  readonly upstreams: Upstreams
  readonly #logoutCalls: AllLogoutCalls
  readonly #watch: LiveSessionsWatch
  readonly #drainTimeoutMs: number
  readonly #log: Log
  #closing: Promise<void> | undefined

  constructor(config: GatewayConfig, shared: SharedParts, own: OwnParts) {
    const { live, streamSessions: known, store, clock, log } = shared
    this.handlers = own.handlers
    this.sessions = own.sessions
    this.endings = own.endings
    this.realms = own.realms
    this.signingKeys = own.signingKeys
    this.signalReceivers = new SignalReceivers(config, own.realms, { ...shared, endings: own.endings })
    this.trusted = own.trusted
    this.check = own.check
    this.upstreams = own.upstreams
    this.#logoutCalls = own.logoutCalls
    this.#watch = watchLiveSessions({ live, sessions: own.sessions, known, store, clock, log })
    this.#log = log
    this.#drainTimeoutMs = config.shutdown.drainTimeoutMs
  }

  start(): void {
    this.realms.start()
    this.signingKeys.start()
    this.signalReceivers.start()
  }

  /** Lets the calls to the providers finish, then closes everything except `upstreams`. */
  async retire(): Promise<void> {
    this.#watch.stop()
    // At once, so that the next generation can take the lease.
    await this.signalReceivers.stop()
    await this.realms.callsEnd()
    await this.realms.settled()
    await this.#logoutCalls.finish()
    await this.#closeParts()
  }

  /** Closes everything. Called when the gateway has no requests any more. */
  async close(): Promise<void> {
    const { realms, signalReceivers, upstreams } = this
    this.#watch.stop()
    const steps = [
      () => Promise.race([signalReceivers.stop(), realms.callsEnd()]),
      () => Promise.race([realms.settled(), realms.callsEnd()]),
      () => this.#logoutCalls.finish(this.#drainTimeoutMs),
      () => this.#closeParts(),
      () => upstreams.destroy(),
      // Calls that were cut off are stored again, for another process or the next start.
      () => this.#logoutCalls.finish(),
    ]
    await runInOrder(steps, this.#log)
  }

  #closeParts(): Promise<void> {
    this.sessions.close()
    this.signingKeys.stop()
    return (this.#closing ??= this.realms.close())
  }
}
