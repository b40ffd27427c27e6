import {
  type Claims,
  claimsOfSession,
  type Environment,
  examineApis,
  examineClaimSources,
  examineProvider,
  examineRedis,
  examineTransmitter,
  type GatewayConfig,
  inSettingsOf,
  isShared,
  type LoadResult,
  pauses,
  type ProviderConfig,
  type ProviderFacts,
  reason,
  registrationOf,
  securityEventsUri,
  upstreamAt,
  type UpstreamConfig,
} from '../../src/entries/doctor.ts'
import { fault, type Finding, ok, withTexts } from './finding.ts'
import { gatewayFindings } from './gateway.ts'
import { apiFinding, claimSourceFinding, providerFindings } from './provider.ts'
import { redisFindings } from './redis.ts'
import { fileFindings } from './secret-files.ts'
import { sessionFileFindings } from './session-file.ts'
import { transmitterFindings } from './transmitter.ts'
import { headerBudgetFinding, withheldFindings } from './upstream-claims.ts'
import { upstreamFindings } from './upstreams.ts'

/** The findings about one subject. */
export interface SubjectFindings {
  /** `provider https://id.example.com` */
  readonly subject: string
  readonly findings: readonly Finding[]
}

export interface ExamineParts {
  readonly config: GatewayConfig
  readonly secretFiles: LoadResult['secretFiles']
  readonly env: Environment
  /** The claims of a person, to measure the identity headers with. They may have short names. */
  readonly claims: Claims | undefined
}

/** How long the whole examination may take, in ms. */
const timeLimitMs = 20_000

/** Examines everything that a gateway with this configuration uses, within `limitMs`. */
export function examine(
  { config, secretFiles, env, claims: given }: ExamineParts,
  limitMs: number = timeLimitMs,
): Promise<SubjectFindings[]> {
  const { providers, session, upstreams } = config
  const { store } = session
  const [{ issuer, claims: shortNames }] = providers
  const who = { iss: issuer, sub: String(given?.['sub'] ?? 'somebody') }
  const claims = given && claimsOfSession(given, who, undefined, shortNames)
  const examinations = providers.map((provider) => ({
    provider,
    facts: examineProvider(provider, registrationOf(provider, config).redirect_uris),
  }))
  const factsFor = (upstream: UpstreamConfig) =>
    examinations.filter(({ provider }) => upstream.providers.includes(provider.name)).map(({ facts }) => facts)
  const about = async (subject: string, check: () => Promise<Finding[]>): Promise<SubjectFindings> => ({
    subject,
    findings: await Promise.race([check().catch(failed), unfinishedAfter(limitMs)]),
  })
  return Promise.all([
    ...examinations.map(({ provider, facts }) =>
      about(`provider ${providers.length === 1 ? '' : `${provider.name}, `}${provider.issuer}`, async () => {
        const ofTransmitter = examineSignals(provider, config)
        const findings = providerFindings(await facts, provider, upstreamsOf(provider, upstreams))
        const ofApis = (await examineApis(provider)).map(apiFinding)
        const ofSources = (await examineClaimSources(provider)).map(claimSourceFinding)
        return [...findings, ...ofApis, ...ofSources, ...(await ofTransmitter)].map((finding) =>
          withTexts(finding, (text) => inSettingsOf(provider, text)),
        )
      }),
    ),
    isShared(store)
      ? about('Redis', async () => redisFindings(await examineRedis(store), store))
      : store.kind === 'file'
        ? about('sessions in a file', async () => sessionFileFindings(store.file))
        : about('sessions in memory', async () => [memoryFinding()]),
    ...upstreams.map((upstream) =>
      about(`upstream ${upstream.name}`, async () => [
        ...(upstream.forwardAuth || upstream.respondsOnly ? [] : await upstreamFindings(anyHostOf(upstream))),
        ...withheldFindings(upstream, claims),
        ...headerBudgetFinding(upstream, claims, await listedClaims(factsFor(upstream))),
      ]),
    ),
    about(`gateway ${config.externalUrl.origin}`, () => gatewayFindings(config, env, Date.now())),
    about('files', async () => fileFindings(config.file, secretFiles)),
  ])
}

async function examineSignals(provider: ProviderConfig, config: GatewayConfig): Promise<Finding[]> {
  const { signals } = provider
  if (signals === undefined) return []
  const receiverUrl = securityEventsUri(provider, config)
  return transmitterFindings(await examineTransmitter({ ...provider, signals }, receiverUrl), signals, receiverUrl)
}

/** An upstream at one of the hosts that its wildcard matches. */
function anyHostOf(upstream: UpstreamConfig): UpstreamConfig {
  return upstreamAt(upstream, upstream.externalUrl.hostname.replace('*', 'gatehouse-doctor'))
}

function upstreamsOf({ name }: ProviderConfig, upstreams: readonly UpstreamConfig[]): readonly UpstreamConfig[] {
  return upstreams.filter(({ providers }) => providers.includes(name))
}

/**
 * The `claims_supported` of the only provider of an upstream; `undefined` when it is absent, or not
 * known in time. Claims of several providers may have other names in sessions.
 */
async function listedClaims([examination, ...others]: readonly Promise<ProviderFacts>[]): Promise<
  readonly string[] | undefined
> {
  if (examination === undefined || others.length > 0) return undefined
  const timeout = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), pauses.examineMs).unref())
  const facts = await Promise.race([examination, timeout])
  if (facts === undefined || 'why' in facts.metadata) return undefined
  const { claims_supported } = facts.metadata.value
  return Array.isArray(claims_supported) ? claims_supported.map(String) : undefined
}

function unfinishedAfter(ms: number): Promise<Finding[]> {
  const remedy = { why: 'its state is unknown', todo: 'check why it accepts connections but does not respond' }
  const finding = fault('doctor.unfinished', `not finished within ${ms / 1000} s`, remedy)
  return new Promise((resolve) => setTimeout(() => resolve([finding]), ms).unref())
}

function memoryFinding(): Finding {
  return ok(
    'sessions.memory',
    'a restart signs everybody out, and only one process is possible; for more, set session.store to Redis',
  )
}

function failed(error: unknown): Finding[] {
  const remedy = { why: 'its state is unknown', todo: 'please report this' }
  return [fault('doctor.failed', `the check failed: ${reason(error)}`, remedy)]
}
