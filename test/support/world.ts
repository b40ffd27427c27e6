import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startDemoUpstream } from '../../examples/demo/upstream.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Clock } from '../../src/core/clock.ts'
import type { Log, LogFields } from '../../src/observe/log.ts'
import { Metrics } from '../../src/observe/metrics.ts'
import { startGateway, type Gateway } from '../../src/server/gateway.ts'
import { Browser } from './browser.ts'
import { formatDiagnostics } from './diagnostics.ts'
import { freePort } from './free-port.ts'
import { replacePauses } from './pauses.ts'
import { startProvider, type TestProvider, type TestProviderOptions } from './provider.ts'
import type { SentinelSetup } from './redis-sentinel.ts'
import { startRedis, type RedisServer } from './redis.ts'

export interface LogLine {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

/** One replica of the gateway. */
export interface Replica {
  readonly gateway: Gateway
  /** Its own address. All replicas share one `external_url`. */
  readonly url: string
  readonly log: LogLine[]
  /** The lines of its access log. */
  readonly access: Readonly<Record<string, unknown>>[]
  readonly metrics: Metrics
  /**
   * The path of its configuration, for a command next to it. The configuration names the secrets in
   * `secrets`.
   */
  readonly file: string
  stop(): Promise<void>
}

export interface World {
  readonly provider: TestProvider
  readonly redis: RedisServer | undefined
  readonly replicas: readonly Replica[]
  /** The address of the first replica, which is the `external_url`. */
  readonly url: string
  /** The address of the application, without the gateway. */
  readonly upstream: URL
  /** Moves the clocks of all replicas by an offset to real time, in ms. */
  moveClock(ms: number): void
  browser(person?: string): Browser
  startReplica(options?: { readonly port?: number }): Promise<Replica>
  /** Posts a form to the back-channel logout endpoint. */
  postLogoutToken(form: Readonly<Record<string, string>> | string, at?: Replica): Promise<Response>
}

export interface WorldOptions {
  readonly store?: 'memory' | 'redis'
  readonly replicas?: number
  /** The Redis of another world, to share it. */
  readonly redis?: RedisServer | undefined
  /** The sessions are in the Redis of this Sentinel. */
  readonly sentinel?: SentinelSetup
  /** YAML below `redis:`, on one line. */
  readonly redisSettings?: string
  readonly client_id?: string
  /** A key that differs from the default key of all worlds, in base64. */
  readonly sessionKey?: string
  /** The configuration has no key, so each process generates one. */
  readonly hasGeneratedKeys?: boolean
  /** The value of `listen` for an address. */
  readonly listen?: (address: string) => string
  /** The `external_url` for the port of the first replica. Default: an http URL. */
  readonly externalUrl?: (port: number) => string
  readonly providerStartsDown?: boolean
  /** Replaces the demo application. */
  readonly upstream?: URL
  /** YAML below `session:`, indented by two. */
  readonly session?: string
  /** YAML below `provider:`, indented by two. */
  readonly providerSettings?: string
  /** Replaces `client_secret` in the configuration: YAML below `provider:`, on one line. */
  readonly credentials?: string
  /** The certificate authority (PEM) that browsers trust. */
  readonly browserCa?: string
  /** More options of the provider. */
  readonly provider?: Partial<TestProviderOptions>
  /** Replaces the identity headers: YAML below `headers:`, indented by six. */
  readonly headers?: string
  /** The path in the `url` of the upstream. */
  readonly upstreamPath?: string
  /** The `targets` of the upstream, in place of its `url`: YAML on one line. */
  readonly targets?: string
  /** YAML of the one upstream, indented by four; for the `external_url` of the gateway. */
  readonly upstreamSettings?: string | ((url: string) => string)
  /** `shutdown.drain_timeout`. Default: half a second. */
  readonly drain?: string
  /** YAML at the top level. */
  readonly settings?: string
  /** The memory size that each replica sees, in bytes. */
  readonly budgetBytes?: number
}

/** The secrets that the configuration files of all worlds name. */
export const secrets = {
  CLIENT_SECRET: 'correct horse battery staple',
  SESSION_KEY: Buffer.alloc(32, 7).toString('base64'),
  PHPMYADMIN_PASSWORD: 'a password that only the gateway knows',
  SIGNALS_AUTHORIZATION: 'Bearer the token of the stream',
}

/** The value of `session.store`. */
function storeOf(redis: RedisServer | undefined, { sentinel, redisSettings = '' }: WorldOptions): string {
  if (sentinel !== undefined)
    return `{ redis: { sentinels: ["127.0.0.1:${sentinel.sentinel.port}"], name: ${sentinel.name}, ${redisSettings} } }`
  return redis === undefined ? 'memory' : `{ redis: { url: "${redis.url}", ${redisSettings} } }`
}

/**
 * Starts a provider, an application and gateways between them: real sockets, real processes and one
 * adjustable clock.
 */
export async function startWorld(t: TestContext, options: WorldOptions = {}): Promise<World> {
  if (options.providerStartsDown === true) replacePauses(t, { waitForDependenciesMs: 100 })
  const port = await freePort()
  const url = options.externalUrl?.(port) ?? `http://127.0.0.1:${port}`
  const redis = options.store === 'redis' ? (options.redis ?? (await startRedis(t))) : undefined
  const provider = await startProvider(t, {
    client_id: options.client_id ?? 'orders',
    client_secret: secrets.CLIENT_SECRET,
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
    startDown: options.providerStartsDown ?? false,
    ...options.provider,
  })
  const upstream = options.upstream ?? (await startUpstream(t))
  let moved = 0
  const clock = { now: () => Date.now() + moved }
  const replicas: Replica[] = []

  const startReplica = async ({ port = 0 }: { readonly port?: number } = {}): Promise<Replica> => {
    const yaml = yamlOf({ url, port, redis, provider, upstream, options })
    const replica = await runReplica(t, yaml, clock, options)
    replicas.push(replica)
    return replica
  }
  await startReplica({ port })
  for (let more = 1; more < (options.replicas ?? 1); more += 1) await startReplica()

  return {
    provider,
    redis,
    replicas,
    url,
    upstream,
    moveClock: (ms) => void (moved += ms),
    browser: (person = 'jane') => new Browser(person, options.browserCa),
    startReplica,
    postLogoutToken: (form, at = replicas[0] as Replica) =>
      fetch(`${at.url}/.gatehouse/backchannel-logout`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
      }),
  }
}

/** Starts a gateway from the text of its configuration, which names the secrets in `secrets`. */
export async function runReplica(
  t: TestContext,
  yaml: string,
  clock: Clock,
  options: Pick<WorldOptions, 'sessionKey' | 'budgetBytes'> = {},
): Promise<Replica> {
  const { config, file } = configure(t, yaml, options)
  const log: LogLine[] = []
  const access: Readonly<Record<string, unknown>>[] = []
  const metrics = new Metrics()
  const gateway = await startGateway(config, {
    log: recordingLog(log),
    metrics,
    access: (line: string) => void access.push(JSON.parse(line) as Readonly<Record<string, unknown>>),
    clock,
    ...(options.budgetBytes === undefined ? {} : { budgetBytes: options.budgetBytes }),
  })
  let stopped: Promise<void> | undefined
  const replica = {
    gateway,
    log,
    access,
    metrics,
    file,
    url: `http://127.0.0.1:${gateway.address.port}`,
    stop: () => (stopped ??= gateway.close()),
  }
  t.after(() => replica.stop())
  return replica
}

async function startUpstream(t: TestContext): Promise<URL> {
  const { url, close } = await startDemoUpstream({ host: '127.0.0.1', port: 0 })
  t.after(() => close())
  return url
}

interface YamlParts {
  readonly url: string
  readonly port: number
  readonly redis: RedisServer | undefined
  readonly provider: TestProvider
  readonly upstream: URL
  readonly options: WorldOptions
}

function yamlOf({ url, port, redis, provider, upstream, options }: YamlParts): string {
  return `version: 1
listen: ${options.listen?.(`127.0.0.1:${port}`) ?? `127.0.0.1:${port}`}
external_url: ${url}
shutdown: { drain_timeout: ${options.drain ?? '500ms'} }
${options.settings ?? ''}
provider:
  issuer: ${provider.issuer}
  client_id: ${options.client_id ?? 'orders'}
  ${options.credentials ?? 'client_secret: { env: CLIENT_SECRET }'}
  claims: { fields: https://id.example.com/claims/fields }
  ${options.providerSettings ?? ''}
session:
  ${options.hasGeneratedKeys === true ? '' : 'keys: [{ env: SESSION_KEY }]'}
  store: ${storeOf(redis, options)}
  ${options.session ?? ''}
upstreams:
  orders:
    ${options.targets === undefined ? `url: ${upstream.origin}${options.upstreamPath ?? ''}` : `targets: ${options.targets}`}
    headers:
      ${
        options.headers ??
        `X-Remote-User: sub
      X-Name: "{given_name} {family_name}"
      X-Email: email
      X-Cost-Centre: fields.costCentre
      X-Groups: { claim: fields.groups, join: ",", encode: percent }`
      }
    ${
      (typeof options.upstreamSettings === 'function' ? options.upstreamSettings(url) : options.upstreamSettings) ??
      `rules:
      - { path: /static/*, access: public }
      - { path: /api/*, unauthenticated: 401 }
      - { path: /admin/*, require: { claim: fields.groups, any_of: [admins] } }
    logout: { paths: [/logout], cookies: [JSESSIONID] }`
    }
`
}

function configure(
  t: TestContext,
  yaml: string,
  { sessionKey = secrets.SESSION_KEY }: Pick<WorldOptions, 'sessionKey'>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-world-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, yaml)
  const loaded = loadConfig(file, { ...secrets, SESSION_KEY: sessionKey })
  if (!loaded.ok) throw new Error(`${formatDiagnostics(loaded.diagnostics)}\n${yaml}`)
  return { config: loaded.config, file }
}

function recordingLog(lines: LogLine[]): Log {
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      void lines.push({ level, message, fields })
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    announce: write('info'),
  }
}
