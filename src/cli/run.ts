import { startAdmin } from '../admin/listener.ts'
import { listDiagnostics } from '../config/document/diagnostics.ts'
import type { LoadResult } from '../config/load.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { systemClock } from '../core/clock.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { countedLog } from '../observe/event-metrics.ts'
import type { Log } from '../observe/log.ts'
import { Metrics } from '../observe/metrics.ts'
import { createLog, type WritingLog } from '../observe/writing-log.ts'
import { type GatewayParts, startGateway } from '../server/gateway.ts'
import { reloadable } from '../server/reloadable.ts'
import { serveProcessApi, WorkerProcesses } from '../workers/messages.ts'
import { tellReady, isWorker, startWorkers } from '../workers/primary.ts'
import { configsFromPrimary, type ConfigsFromPrimary } from '../workers/worker-config.ts'
import type { CommandInput } from './command.ts'
import { loadServableOrReport } from './load.ts'
import { logFormat } from './paint.ts'
import { reloadOnChange } from './reload.ts'
import { socketOfSystemd, superviseBySystemd } from './systemd.ts'

/** How long writing the last lines of the log may take, in ms. */
const flushTimeoutMs = 1000

/** `gatehouse run`: serves until a signal stops it. */
export async function run(input: CommandInput): Promise<number> {
  if (isWorker()) {
    const configs = configsFromPrimary()
    const config = await configs.first
    return serve(config, input, (parts) => serveAsWorker(config, configs, parts))
  }
  const loaded = loadServableOrReport(input)
  if (loaded === undefined) return 1
  const { config, files, warnings } = loaded
  return serve(config, input, (parts, signals) => {
    if (warnings.length > 0) parts.log.warn('config.warnings', { warnings: listDiagnostics(warnings) })
    return config.workers > 1
      ? serveWithWorkers(config, input, { ...parts, log: countedLog(parts.log, parts.metrics), files, signals })
      : serveAlone(config, input, { ...parts, files })
  })
}

/** Starts to serve. Resolves to the function that stops it. */
type Start = (parts: ServingParts, signals: StopSignals) => Promise<() => Promise<void>>

/**
 * Serves until a signal stops it, and writes the last lines of the log before it returns. Resolves
 * to the exit code.
 */
export async function serve(config: GatewayConfig, input: CommandInput, start: Start): Promise<number> {
  const log = createLog({
    level: config.log.level,
    format: logFormat(config.log.format, process.stdout.isTTY, input.env),
    isShared: config.workers > 1,
  })
  try {
    const metrics = new Metrics()
    logUnexpectedErrors(countedLog(log, metrics))
    const signals = stopSignals()
    const supervision = superviseBySystemd(input.env, log)
    const stop = await start({ log, metrics, socket: socketOfSystemd(input.env) }, signals)
    if (!signals.wereReceived()) supervision.ready()
    await signals.first
    supervision.stopping()
    if (!isWorker()) log.announce('gatehouse is stopping')
    return await Promise.race([stop().then(() => 0), signals.again.then(() => 1)])
  } finally {
    // `process.exit` would wait for the reader of the log, which may have stalled.
    if (!(await log.flush(flushTimeoutMs))) process.kill(process.pid, 'SIGKILL')
  }
}

interface ServingParts {
  readonly log: WritingLog
  readonly metrics: Metrics
  /** The listening socket of systemd. */
  readonly socket: number | undefined
}

function gatewayParts(config: GatewayConfig, { log, metrics, socket }: ServingParts): GatewayParts {
  return {
    log,
    metrics,
    socket,
    access: config.log.access && log.isWritten('info') ? log.add : undefined,
    auditLog: log.audit,
    dropped: () => log.dropped(),
  }
}

async function serveAsWorker(
  config: GatewayConfig,
  configs: ConfigsFromPrimary,
  parts: ServingParts,
): Promise<() => Promise<void>> {
  const gateway = await startGateway(config, { ...gatewayParts(config, parts), serveProcessApi })
  configs.follow((next) => gateway.reload(next))
  tellReady()
  collectStartupGarbage()
  return () => gateway.close()
}

interface AloneParts extends ServingParts, Pick<LoadResult, 'files'> {
  /** Further settings that differ but need a restart, for `config.needs_restart`. */
  readonly needRestart?: (next: GatewayConfig) => readonly string[]
}

/** Serves in this process, and reloads when a file changes. Resolves to what stops it. */
export async function serveAlone(
  config: GatewayConfig,
  input: CommandInput,
  { files, needRestart = () => [], ...parts }: AloneParts,
): Promise<() => Promise<void>> {
  const { log, metrics } = parts
  const starting = startGateway(config, gatewayParts(config, parts))
  // Watching begins before the start has ended, so that no change is missed.
  reloadOnChange(input, {
    log: countedLog(log, metrics),
    files,
    apply: async (next) => [...(await (await starting).reload(next)), ...needRestart(next)],
  })
  const gateway = await starting
  const { store, provider } = gateway.foundAtStart
  const found = { store_responds: store, provider_found: provider }
  log.announce('gatehouse is ready', { ...readiness(config, gateway.address.port), ...found })
  collectStartupGarbage()
  return () => gateway.close()
}

interface PrimaryParts extends Omit<ServingParts, 'log'>, Pick<LoadResult, 'files'> {
  readonly log: Log
  readonly signals: StopSignals
}

async function serveWithWorkers(
  config: GatewayConfig,
  input: CommandInput,
  { log, files, metrics, signals, socket }: PrimaryParts,
): Promise<() => Promise<void>> {
  let running = config
  const processes = new WorkerProcesses(() => metrics.collect())
  // The primary serves it, because requests cannot block the primary.
  const admin =
    config.admin &&
    (await startAdmin(config.admin, config.limits, {
      clock: systemClock,
      log: countedLog(log, metrics),
      running: () => running,
      processes,
    }))
  const starting = startWorkers({ log, processes, config, socket, stopped: signals.first }).catch((cause: unknown) => {
    throw new OperatorError(reason(cause), { cause })
  })
  reloadOnChange(input, {
    log,
    files,
    apply: async (next) => {
      const { config: wanted, needRestart } = reloadable(running, next)
      await (await starting).reload(wanted)
      running = wanted
      return needRestart
    },
  })
  const workers = await starting
  if (!signals.wereReceived())
    log.announce('gatehouse is ready', { ...readiness(config, config.listen.port), workers: config.workers })
  return async () => {
    await workers.stop()
    await admin?.close()
  }
}

/**
 * Frees about 12 MB of memory that only the start needs. Without this, the process keeps it. Works
 * only with `--expose-gc`, which the image sets.
 */
function collectStartupGarbage(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

function readiness(config: GatewayConfig, port: number) {
  const scheme = config.listen.tls === undefined ? 'http' : 'https'
  const host = config.listen.host.includes(':') ? `[${config.listen.host}]` : config.listen.host
  return {
    listen: `${scheme}://${host}:${port}`,
    url: config.externalUrl.origin,
    store: config.session.store.kind,
    pid: process.pid,
  }
}

/**
 * A second signal within this time, in ms, is the same request to stop: npm and the terminal both
 * forward it.
 */
const sameSignalMs = 1000

interface StopSignals {
  /** Resolves at the first signal. */
  readonly first: Promise<void>
  /** Resolves at a second signal, which ends the process at once. Never in a worker. */
  readonly again: Promise<void>
  wereReceived(): boolean
}

/** Listens for SIGTERM and SIGINT from now on. */
function stopSignals(): StopSignals {
  let firstAt = Infinity
  const first = Promise.withResolvers<void>()
  const again = Promise.withResolvers<void>()
  const receive = () => {
    const now = performance.now()
    firstAt = Math.min(firstAt, now)
    first.resolve()
    if (now > firstAt + sameSignalMs && !isWorker()) again.resolve()
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, receive)
  return { first: first.promise, again: again.promise, wereReceived: () => firstAt < Infinity }
}

/**
 * Logs unexpected errors instead of ending the process, because an error in one request must not
 * end the others.
 */
function logUnexpectedErrors(log: Log): void {
  process.on('unhandledRejection', (error) =>
    log.error('process.unhandled_rejection', {
      reason: reason(error),
      stack: error instanceof Error ? error.stack : undefined,
    }),
  )
}
