import { startAdmin } from '../admin/listener.ts'
import type { LoadResult } from '../config/load.ts'
import type { GatewayConfig } from '../config/model.ts'
import { systemClock } from '../core/clock.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { countedLog } from '../observe/event-metrics.ts'
import { type Log } from '../observe/log.ts'
import { Metrics } from '../observe/metrics.ts'
import { createLog, type WritingLog } from '../observe/writing-log.ts'
import { startGateway, type GatewayParts } from '../server/gateway.ts'
import { reloadable } from '../server/reloadable.ts'
import { answerAbove, WorkerAnswers } from '../workers/messages.ts'
import { announceReady, isWorker, startWorkers } from '../workers/primary.ts'
import { configsFromAbove, type ConfigsFromAbove } from '../workers/worker-config.ts'
import type { CommandInput } from './command.ts'
import { loadServableOrSay } from './load.ts'
import { logFormat } from './log-format.ts'
import { reloadOnChange } from './reload.ts'

/** How long the last lines of the log are waited for, in ms. */
const lastLinesMs = 1000

/** `gatehouse run`: serves until it is told to stop. */
export async function run(input: CommandInput): Promise<number> {
  if (isWorker()) {
    const configs = configsFromAbove()
    const config = await configs.first
    return serve(config, input, (parts) => serveAsWorker(config, configs, parts))
  }
  const loaded = loadServableOrSay(input)
  if (loaded === undefined) return 1
  const { config, files } = loaded
  return serve(config, input, (parts, signals) =>
    config.workers > 1
      ? serveWithWorkers(config, input, { ...parts, log: countedLog(parts.log, parts.metrics), files, signals })
      : serveAlone(config, input, { ...parts, files }),
  )
}

/** What is done with a log, of which the last lines are not lost. */
async function logged<T>(
  config: GatewayConfig,
  input: CommandInput,
  work: (log: WritingLog) => Promise<T>,
): Promise<T> {
  const log = createLog({
    level: config.log.level,
    format: logFormat(config.log.format, process.stdout.isTTY, input.env),
    isShared: config.workers > 1,
  })
  try {
    return await work(log)
  } finally {
    // An exit would wait for the reader of the log, and one that has stalled never comes.
    if (!(await log.flush(lastLinesMs))) process.kill(process.pid, 'SIGKILL')
  }
}

/** Begins to serve; resolves to what ends it. */
type Start = (parts: ServingParts, signals: StopSignals) => Promise<() => Promise<void>>

/** Serves until it is told to stop; resolves to the exit code. */
export function serve(config: GatewayConfig, input: CommandInput, start: Start): Promise<number> {
  return logged(config, input, (log) => serveLogged(log, start))
}

async function serveLogged(log: WritingLog, start: Start): Promise<number> {
  const metrics = new Metrics()
  reportTheUnexpected(countedLog(log, metrics))
  const signals = stopSignals()
  const stop = await start({ log, metrics }, signals)
  await signals.first
  if (!isWorker()) log.announce('gatehouse is stopping')
  return Promise.race([stop().then(() => 0), signals.again.then(() => 1)])
}

interface ServingParts {
  readonly log: WritingLog
  readonly metrics: Metrics
}

function gatewayParts(config: GatewayConfig, { log, metrics }: ServingParts): GatewayParts {
  return {
    ...{ log, metrics },
    access: config.log.access && log.isWritten('info') ? log.add : undefined,
    auditLog: log.audit,
    dropped: () => log.dropped(),
  }
}

async function serveAsWorker(
  config: GatewayConfig,
  configs: ConfigsFromAbove,
  parts: ServingParts,
): Promise<() => Promise<void>> {
  const gateway = await startGateway(config, { ...gatewayParts(config, parts), answering: answerAbove })
  configs.follow((next) => gateway.reload(next))
  announceReady()
  dropWhatTheStartLeft()
  return () => gateway.close()
}

interface AloneParts extends ServingParts, Pick<LoadResult, 'files'> {
  /**
   * What around the gateway stays as it was when the file changes, as `config.needs_restart` names
   * it.
   */
  readonly staysAround?: (next: GatewayConfig) => readonly string[]
}

/** Serves in this process, and by the file as it changes; resolves to what ends it. */
export async function serveAlone(
  config: GatewayConfig,
  input: CommandInput,
  { files, staysAround = () => [], ...parts }: AloneParts,
): Promise<() => Promise<void>> {
  const { log, metrics } = parts
  const starting = startGateway(config, gatewayParts(config, parts))
  // What changes while it starts is taken, too.
  reloadOnChange(input, {
    ...{ log: countedLog(log, metrics), files },
    apply: async (next) => [...(await (await starting).reload(next)), ...staysAround(next)],
  })
  const gateway = await starting
  const { store, provider } = gateway.foundAtStart
  const found = { store_answers: store, provider_found: provider }
  log.announce('gatehouse is ready', { ...readiness(config, gateway.address.port), ...found })
  dropWhatTheStartLeft()
  return () => gateway.close()
}

async function serveWithWorkers(
  config: GatewayConfig,
  input: CommandInput,
  {
    log,
    files,
    metrics,
    signals,
  }: Pick<LoadResult, 'files'> & {
    readonly log: Log
    readonly metrics: Metrics
    readonly signals: StopSignals
  },
): Promise<() => Promise<void>> {
  let running = config
  const answers = new WorkerAnswers(() => metrics.collect())
  // Here, where no request can hang.
  const admin =
    config.admin &&
    (await startAdmin(config.admin, config.limits, {
      ...{ clock: systemClock, log: countedLog(log, metrics), running: () => running, processes: answers },
    }))
  const starting = startWorkers({ log, answers, config, stopped: signals.first }).catch((cause: unknown) => {
    throw new OperatorError(reason(cause), { cause })
  })
  reloadOnChange(input, {
    ...{ log, files },
    apply: async (next) => {
      const { config: wanted, needRestart } = reloadable(running, next)
      await (await starting).reload(wanted)
      running = wanted
      return needRestart
    },
  })
  const workers = await starting
  if (!signals.wereHeard())
    log.announce('gatehouse is ready', { ...readiness(config, config.listen.port), workers: config.workers })
  return async () => {
    await workers.stop()
    await admin?.close()
  }
}

/**
 * A dozen MB, where Node.js was started with `--expose-gc`, as in the image: otherwise they stay
 * for as long as the process runs.
 */
function dropWhatTheStartLeft(): void {
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
 * So long after the first signal, in ms, a second one is still the first: npm and a terminal both
 * pass it on.
 */
const sameSignalMs = 1000

interface StopSignals {
  /** Somebody asks the process to stop. */
  readonly first: Promise<void>
  /**
   * Somebody asks again, for it takes too long. Never of a worker: the process above it decides.
   */
  readonly again: Promise<void>
  wereHeard(): boolean
}

/** Listens for SIGTERM and SIGINT from now on. */
function stopSignals(): StopSignals {
  let heard = () => {}
  let heardAgain = () => {}
  let firstAt = Infinity
  const first = new Promise<void>((resolve) => (heard = resolve))
  const again = new Promise<void>((resolve) => (heardAgain = resolve))
  const hear = () => {
    const now = performance.now()
    firstAt = Math.min(firstAt, now)
    heard()
    if (now > firstAt + sameSignalMs && !isWorker()) heardAgain()
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, hear)
  return { first, again, wereHeard: () => firstAt < Infinity }
}

/**
 * A fault in one request must not take the others along; it is a bug all the same, and has to be
 * seen.
 */
function reportTheUnexpected(log: Log): void {
  process.on('unhandledRejection', (error) =>
    log.error('process.unhandled_rejection', { reason: reason(error), stack: stackOf(error) }),
  )
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined
}
