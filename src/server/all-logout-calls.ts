import { setTimeout as wait } from 'node:timers/promises'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { Keyring } from '../core/seal.ts'
import { LogoutCalls } from '../logout/logout-calls.ts'
import type { Instruments } from '../observe/instruments.ts'
import { callLogout } from '../proxy/logout-call.ts'
import type { Upstreams } from '../proxy/upstream.ts'
import { cookiesOf } from '../session/cookies/application-cookies.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import { LogoutJobs } from '../session/live/logout-jobs.ts'
import { audienceOf } from '../session/record/record.ts'
import type { SessionStore } from '../session/store/store.ts'

/** The logout jobs by audience. */
export type JobsByAudience = ReadonlyMap<string, LogoutJobs>

/** The logout jobs of each audience; none when no upstream has a logout call. */
export function createJobs({ providers, upstreams }: GatewayConfig, keyring: Keyring): JobsByAudience {
  const all = providers.map(audienceOf).map((audience) => new LogoutJobs({ keyring, audience, upstreams }))
  return new Map(all.flatMap((jobs) => (jobs.isEmpty ? [] : [[jobs.audience, jobs]])))
}

export interface AllLogoutCallsParts extends Instruments {
  readonly store: SessionStore
  readonly jobs: JobsByAudience
  readonly endings: Pick<SessionEndings, 'onEnded'>
  readonly upstreams: Upstreams
}

/** The logout calls of all upstreams that have one, for the sessions of all audiences. */
export class AllLogoutCalls {
  readonly #ofAudiences: readonly LogoutCalls[]

  constructor(config: GatewayConfig, parts: AllLogoutCallsParts) {
    this.#ofAudiences = [...parts.jobs.values()].map((jobs) => callsOf(jobs, config, parts))
    for (const calls of this.#ofAudiences) parts.endings.onEnded((keys, where) => calls.noteEnded(keys, where))
  }

  /** @param atMostMs absent: as long as it takes */
  async finish(atMostMs?: number): Promise<void> {
    const finished = Promise.all(this.#ofAudiences.map((calls) => calls.finish()))
    await (atMostMs === undefined ? finished : Promise.race([finished, wait(atMostMs, undefined, { ref: false })]))
  }
}

function callsOf(jobs: LogoutJobs, { upstreams: configs }: GatewayConfig, parts: AllLogoutCallsParts): LogoutCalls {
  const { store, upstreams, clock } = parts
  return new LogoutCalls({
    ...parts,
    store: store.jobs,
    jobs,
    longestCallMs: Math.max(...configs.map(({ logout }) => logout.call?.timeoutMs ?? 0)),
    call: async (name, session, job) => {
      const config = configs.find((upstream) => upstream.name === name)
      if (config?.logout.call === undefined) return 'unknown_upstream'
      const person = { session, cookies: cookiesOf(job, name), claims: job.claims, tokens: job.tokens }
      return callLogout(config, config.logout.call, person, { upstreams, now: clock.now() })
    },
  })
}
