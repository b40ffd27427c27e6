import { type Diagnostic, listDiagnostics } from '../config/document/diagnostics.ts'
import { stampOf } from '../config/document/files.ts'
import { loadConfigInSteps } from '../config/load.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { reason } from '../core/errors.ts'
import { pauses } from '../core/pauses.ts'
import { runInTurns } from '../core/steps.ts'
import { failingTestsInSteps } from '../explain/embedded-tests.ts'
import type { Log } from '../observe/log.ts'
import type { CommandInput } from './command.ts'

export interface ReloadParts {
  readonly log: Log
  /** The files of the first configuration: `LoadResult.files`. */
  readonly files: ReadonlyMap<string, string>
  /** Applies a configuration to the gateway; resolves to the settings that need a restart. */
  readonly apply: (config: GatewayConfig) => Promise<readonly string[]>
}

/**
 * Reloads the configuration when one of its files changes, and at SIGHUP. An invalid configuration
 * changes nothing; its errors go to the log. On a terminal SIGHUP keeps its default effect: it ends
 * the process, because the terminal was closed.
 */
export function reloadOnChange({ file, env }: Pick<CommandInput, 'file' | 'env'>, parts: ReloadParts): void {
  const { log, files, apply } = parts
  let isReloading = false
  let pending: string | undefined
  /** Reloads that are requested during a reload are merged into one reload after it. */
  const reload = (why: string) => {
    pending = why
    if (!isReloading) void reloadWhilePending()
  }
  const watch = watchFiles(() => reload('a file changed'))
  watch.watch(files)
  if (!process.stdout.isTTY) process.on('SIGHUP', () => reload('SIGHUP'))

  async function reloadWhilePending(): Promise<void> {
    isReloading = true
    while (pending !== undefined) {
      const why = pending
      pending = undefined
      await reloadOnce(why)
    }
    isReloading = false
  }

  async function reloadOnce(why: string): Promise<void> {
    try {
      await readAndApply(why)
    } catch (error) {
      log.error('config.rejected', { why, faults: [reason(error)] })
    }
  }

  async function readAndApply(why: string): Promise<void> {
    const loaded = await runInTurns(loadConfigInSteps(file, env))
    watch.watch(loaded.files)
    const faults = loaded.ok ? await runInTurns(failingTestsInSteps(loaded.config)) : loaded.diagnostics.filter(isError)
    if (!loaded.ok || faults.length > 0) {
      const hint =
        'The gateway keeps its current configuration. Fix the file; the gateway reads it again when it changes.'
      log.error('config.rejected', { why, faults: listDiagnostics(faults), hint })
      return
    }
    const needRestart = await apply(loaded.config)
    const warnings = listDiagnostics(loaded.warnings)
    log.info('config.reloaded', { why, ...(warnings.length > 0 ? { warnings } : {}) })
    if (needRestart.length > 0)
      log.warn('config.needs_restart', { settings: needRestart, hint: 'Restart the gateway to apply these settings.' })
  }
}

function isError({ severity }: Diagnostic): boolean {
  return severity === 'error'
}

interface FileWatch {
  /** Watches these files from now on. Each has the stamp that it had before it was read. */
  watch(files: ReadonlyMap<string, string>): void
  stop(): void
}

/**
 * Calls `onChange` after a file was changed, replaced, removed or created. It waits until no file
 * changes between two checks, because a program may write several files. It polls, because
 * `fs.watch` does not notice when a symbolic link leads elsewhere, as in a container.
 */
export function watchFiles(onChange: () => void, everyMs: number = pauses.watchFilesMs): FileWatch {
  let files: readonly string[] = []
  let reported = ''
  let last = ''
  const poll = () => {
    const found = files.map(stampOf).join()
    const isSettled = found === last
    last = found
    if (!isSettled || found === reported) return
    reported = found
    onChange()
  }
  const timer = setInterval(poll, everyMs).unref()
  return {
    watch: (read) => {
      files = [...read.keys()]
      reported = last = [...read.values()].join()
    },
    stop: () => clearInterval(timer),
  }
}
