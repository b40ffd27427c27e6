import type { HealthCheckConfig, TargetConfig, UpstreamConfig } from '../../config/model/upstream.ts'
import { reason } from '../../core/errors.ts'
import { Repeating } from '../../core/repeating.ts'
import type { Log } from '../../observe/log.ts'
import type { Candidate } from './balancer.ts'
import { checkHealth } from './health-check.ts'
import { createResolver, resolveTargets } from './resolve.ts'
import type { TargetPool } from './target.ts'

export interface TargetsWorkParts {
  readonly pool: Pick<TargetPool, 'answers'>
  readonly log: Log
  readonly candidates: () => readonly Candidate[]
  /** DNS has given these targets. */
  readonly use: (targets: readonly TargetConfig[]) => void
}

/** Resolves the name of the targets of an upstream, and checks their health, in the background. */
export class TargetsWork {
  readonly #firstAttempt = Promise.withResolvers<void>()
  /** Resolves after the first attempt to resolve the name, whatever its result is. */
  readonly resolved = this.#firstAttempt.promise
  readonly #config: UpstreamConfig
  readonly #parts: TargetsWorkParts
  readonly #work: readonly Repeating[]
  #isResolving: boolean
  #fault: string | undefined
  #areAllUnhealthy = false
  #isStopped = false

  constructor(config: UpstreamConfig, parts: TargetsWorkParts) {
    this.#config = config
    this.#parts = parts
    this.#isResolving = config.resolve !== undefined
    this.#work = [...this.#resolution(), ...this.#checks()]
  }

  /** The name is being resolved for the first time. */
  get isResolving(): boolean {
    return this.#isResolving
  }

  /** Why DNS gives no addresses; `undefined` when it does. */
  get reason(): string | undefined {
    return this.#fault
  }

  /** The last answer of DNS, which an earlier configuration may have got. */
  get lastAnswer(): readonly TargetConfig[] | undefined {
    return this.#parts.pool.answers.get(this.#key)
  }

  start(): void {
    for (const work of this.#work) work.wake()
  }

  stop(): void {
    this.#isStopped = true
    this.#endAttempt()
    for (const work of this.#work) void work.stop()
  }

  get #key(): string {
    return JSON.stringify(this.#config.resolve ?? null)
  }

  #endAttempt(): void {
    this.#isResolving = false
    this.#firstAttempt.resolve()
  }

  #resolution(): readonly Repeating[] {
    const { name: upstream, resolve } = this.#config
    if (resolve === undefined) return []
    const resolver = createResolver(resolve)
    const { log, pool, use } = this.#parts
    const run = async () => {
      try {
        const targets = await resolveTargets(resolve, resolver)
        if (this.#isStopped) return undefined
        if (this.#fault !== undefined) log.info('upstream.resolved', { upstream, name: resolve.name })
        this.#fault = undefined
        pool.answers.set(this.#key, targets)
        use(targets)
      } catch (error) {
        const fault = reason(error)
        // Logged once for each reason, because a fault may last for hours.
        if (fault !== this.#fault && !this.#isStopped)
          log.warn('upstream.not_resolved', {
            upstream,
            name: resolve.name,
            reason: fault,
            hint: 'Requests go to the targets of the last answer, if there was one. Check the name and the DNS server.',
          })
        this.#fault = fault
      }
      this.#endAttempt()
      return jittered(resolve.everyMs)
    }
    return [new Repeating('upstream_resolution', run)]
  }

  #checks(): readonly Repeating[] {
    const { healthCheck } = this.#config
    if (healthCheck === undefined) return []
    const run = async () => {
      await Promise.all(this.#parts.candidates().map((each) => this.#check(each)))
      this.#noteAll(healthCheck)
      return jittered(healthCheck.everyMs)
    }
    return [new Repeating('upstream_health_checks', run)]
  }

  /** When no target passes, the check itself may be wrong. */
  #noteAll({ path }: HealthCheckConfig): void {
    const candidates = this.#parts.candidates()
    const isAll = candidates.length > 0 && candidates.every(({ target }) => target.health.state(0) === 'unhealthy')
    if (isAll && !this.#areAllUnhealthy && !this.#isStopped)
      this.#parts.log.warn('upstream.all_unhealthy', {
        upstream: this.#config.name,
        path,
        reason: candidates[0]?.target.health.reason,
        hint: `All targets get requests, as without health checks. Compare path and expect of upstreams.${this.#config.name}.health_check with what the application offers.`,
      })
    this.#areAllUnhealthy = isAll
  }

  async #check({ target }: Candidate): Promise<void> {
    const { name: upstream, healthCheck } = this.#config
    if (healthCheck === undefined) return
    const fault = await checkHealth(this.#config, healthCheck, target.connect)
    // The target may belong to another configuration by now.
    if (this.#isStopped) return
    const change = target.health.check(fault, healthCheck)
    if (change === 'healthy') this.#parts.log.info('upstream.target_healthy', { upstream, target: target.name })
    else if (change === 'unhealthy')
      this.#parts.log.warn('upstream.target_unhealthy', { upstream, target: target.name, reason: fault })
  }
}

/**
 * A pause that is up to a tenth shorter or longer, so that replicas do not check at the same time.
 */
function jittered(ms: number): number {
  return ms * (0.9 + Math.random() / 5)
}
