import type { LoadResult } from '../config/load.ts'
import type { GatewayConfig } from '../config/model.ts'
import { registrationOf } from '../config/registration.ts'
import type { Claims } from '../core/claims.ts'
import { reason } from '../core/errors.ts'
import { examineProvider, type ProviderFacts } from '../provider/examine.ts'
import { examineRedis } from '../session/redis/examine.ts'
import { patienceMs } from './connect.ts'
import { fault, type Finding, ok } from './finding.ts'
import { gatewayFindings } from './gateway.ts'
import { headerBudgetFinding } from './header-budget.ts'
import { type Environment, providerFindings } from './provider.ts'
import { redisFindings } from './redis.ts'
import { fileFindings } from './secret-files.ts'
import { upstreamFindings } from './upstreams.ts'

/** What was found about one thing. */
export interface Examined {
  /** `provider https://id.example.com` */
  readonly subject: string
  readonly findings: readonly Finding[]
}

export interface Surroundings {
  readonly config: GatewayConfig
  readonly secretFiles: LoadResult['secretFiles']
  readonly env: Environment
  /** Of somebody who signs in, to measure the headers with. */
  readonly claims: Claims | undefined
}

/** How long all of it may take, whatever each look waits for, in ms. */
const budgetMs = 20_000

/**
 * Looks at everything that a gateway of this configuration has to do with, all at the same time.
 * Takes `budget` ms at most.
 */
export function examine(
  { config, secretFiles, env, claims }: Surroundings,
  budget: number = budgetMs,
): Promise<Examined[]> {
  const { provider, session, upstreams } = config
  const { store } = session
  const { redirect_uris } = registrationOf(config)
  const asked = examineProvider(provider, redirect_uris)
  const looks: readonly (readonly [subject: string, look: () => Promise<Finding[]>])[] = [
    [`provider ${provider.issuer}`, async () => providerFindings(await asked, provider, env)],
    store.kind === 'memory'
      ? ['sessions in memory', async () => [memoryFinding()]]
      : ['Redis', async () => redisFindings(await examineRedis(store), store)],
    ...upstreams.map(
      (upstream) =>
        [
          `upstream ${upstream.name}`,
          async () => [
            ...(await upstreamFindings(upstream)),
            ...headerBudgetFinding(upstream, claims, await listedClaims(asked)),
          ],
        ] as const,
    ),
    [`gateway ${config.externalUrl.origin}`, () => gatewayFindings(config, env, Date.now())],
    ['files', async () => fileFindings(config.file, secretFiles)],
  ]
  return Promise.all(
    looks.map(async ([subject, look]) => ({
      subject,
      findings: await Promise.race([look().catch(failed), unfinishedAfter(budget)]),
    })),
  )
}

/**
 * The claims that a provider lists, as soon as it has said so; `undefined` when it lists none, or
 * takes long.
 */
async function listedClaims(asked: Promise<ProviderFacts>): Promise<readonly string[] | undefined> {
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), patienceMs).unref())
  const facts = await Promise.race([asked, late])
  if (facts === undefined || 'why' in facts.metadata) return undefined
  const { claims_supported } = facts.metadata.value
  return Array.isArray(claims_supported) ? claims_supported.map(String) : undefined
}

function unfinishedAfter(ms: number): Promise<Finding[]> {
  const remedy = { why: 'nothing is known of it now', todo: 'see what it waits for: it is up, and does not answer' }
  const finding = fault('doctor.unfinished', `no end within ${ms / 1000} s`, remedy)
  return new Promise((resolve) => setTimeout(() => resolve([finding]), ms).unref())
}

function memoryFinding(): Finding {
  return ok(
    'sessions.memory',
    'a restart signs everybody out, and there can be one process only; Redis is for more (session.store)',
  )
}

function failed(error: unknown): Finding[] {
  const remedy = { why: 'nothing is known of it now', todo: 'please report this' }
  return [fault('doctor.failed', `could not be looked at: ${reason(error)}`, remedy)]
}
