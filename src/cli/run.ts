import { loadConfig } from '../config/load.ts'
import type { GatewayConfig, LogConfig } from '../config/model.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { countedLog } from '../observe/event-metrics.ts'
import { createLog, type Log, type WritingLog } from '../observe/log.ts'
import { Metrics } from '../observe/metrics.ts'
import { startGateway } from '../server/gateway.ts'
import { reloadable } from '../server/reloadable.ts'
import { metricsOfAllWorkers } from '../server/worker-metrics.ts'
import { announceReady, isWorker, onReloadOrder, startWorkers } from '../server/workers.ts'
import { loadAndSay } from './load.ts'
import type { CommandInput } from './command.ts'
import { failingTests } from '../explain/embedded-tests.ts'
import { reloadOnChange } from './reload.ts'
import { shownDiagnostics } from './show-diagnostics.ts'

/** How long the last lines of the log are waited for, in ms. */
const lastLinesMs = 1000

/** `gatehouse run`: serves until it is told to stop. */
export async function run(input: CommandInput): Promise<number> {
  const loaded = loadAndSay(isWorker() ? { ...input, err: () => {} } : input)
  if (!loaded.ok) return 1
  const { config } = loaded
  if (!isWorker()) {
    const failures = failingTests(config)
    if (failures.length > 0) {
      input.err(shownDiagnostics(failures, loaded.sources, input.paintErr))
      return 1
    }
  }
  const log = createLog({
    level: config.log.level,
    format: formatFor(config.log.format, process.stdout.isTTY, input.env),
    isShared: config.workers > 1,
  })
  try {
    return await serve(config, input, log)
  } finally {
    // An exit would wait for the reader of the log, and one that has stalled never comes.
    if (!(await log.flush(lastLinesMs))) process.kill(process.pid, 'SIGKILL')
  }
}

/** Serves until it is told to stop; resolves to the exit code. */
async function serve(config: GatewayConfig, input: CommandInput, log: WritingLog): Promise<number> {
  const metrics = new Metrics()
  reportTheUnexpected(countedLog(log, metrics))
  const signals = stopSignals()
  const stop =
    config.workers > 1 && !isWorker()
      ? await serveWithWorkers(config, input, log, signals)
      : await serveAlone(config, input, { log, metrics })
  await signals.first
  if (!isWorker()) log.announce('gatehouse is stopping')
  return Promise.race([stop().then(() => 0), signals.again.then(() => 1)])
}

async function serveAlone(
  config: GatewayConfig,
  input: CommandInput,
  { log, metrics }: { readonly log: WritingLog; readonly metrics: Metrics },
): Promise<() => Promise<void>> {
  const gateway = await startGateway(config, {
    log,
    metrics,
    access: config.log.access && log.isWritten('info') ? log.add : undefined,
    droppedLines: () => log.dropped(),
    ...(isWorker() ? { metricsOfAll: metricsOfAllWorkers } : {}),
  })
  if (isWorker()) {
    onReloadOrder(() => {
      const loaded = loadConfig(input.file, input.env)
      // Whatever is wrong with it has been said by the process above.
      if (loaded.ok) void gateway.reload(loaded.config)
    })
    announceReady()
  } else {
    reloadOnChange(input, { log, apply: (next) => gateway.reload(next) })
    const { store, provider } = gateway.foundAtStart
    const found = { store_answers: store, provider_found: provider }
    log.announce('gatehouse is ready', { ...readiness(config, gateway.address.port), ...found })
  }
  return () => gateway.close()
}

async function serveWithWorkers(
  config: GatewayConfig,
  input: CommandInput,
  log: Log,
  signals: StopSignals,
): Promise<() => Promise<void>> {
  const { drainTimeoutMs } = config.shutdown
  const parts = { log, drainTimeoutMs, stopped: signals.first }
  const workers = await startWorkers(config.workers, parts).catch((cause: unknown) => {
    throw new OperatorError(reason(cause), { cause })
  })
  let running = config
  reloadOnChange(input, {
    log,
    apply: async (next) => {
      const { config: wanted, needRestart } = reloadable(running, next)
      running = wanted
      workers.reload()
      return needRestart
    },
  })
  if (!signals.wereHeard())
    log.announce('gatehouse is ready', { ...readiness(config, config.listen.port), workers: config.workers })
  return () => workers.stop()
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

/** So long after the first signal, in ms, a second one is still the first: npm and a terminal both pass it on. */
const sameSignalMs = 1000

/** What `log.format` means for a stream; `isTTY` is the stream's. Colours are off with NO_COLOR (no-color.org). */
export function formatFor(
  format: LogConfig['format'],
  isTTY: boolean,
  env: CommandInput['env'],
): 'json' | 'pretty' | 'pretty_in_colour' {
  if (format === 'json' || (format === 'auto' && !isTTY)) return 'json'
  return isTTY && !env['NO_COLOR'] ? 'pretty_in_colour' : 'pretty'
}

export interface StopSignals {
  /** Somebody asks the process to stop. */
  readonly first: Promise<void>
  /** Somebody asks again, for it takes too long. Never of a worker: the process above it decides. */
  readonly again: Promise<void>
  wereHeard(): boolean
}

/** Listens for SIGTERM and SIGINT from now on. */
export function stopSignals(): StopSignals {
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

/** A fault in one request must not take the others along; it is a bug all the same, and has to be seen. */
function reportTheUnexpected(log: Log): void {
  process.on('unhandledRejection', (error) =>
    log.error('process.unhandled_rejection', { reason: reason(error), stack: stackOf(error) }),
  )
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined
}
