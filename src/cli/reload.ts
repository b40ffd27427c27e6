import { type Diagnostic, formatDiagnostic } from '../config/document/diagnostics.ts'
import { loadConfig } from '../config/load.ts'
import type { GatewayConfig } from '../config/model.ts'
import { reason } from '../core/errors.ts'
import { failingTests } from '../explain/embedded-tests.ts'
import type { Log } from '../observe/log.ts'
import type { CommandInput } from './command.ts'
import { watchFiles } from './watch-files.ts'

export interface ReloadParts {
  readonly log: Log
  /** Of the configuration that is served by at first: `LoadResult.files`. */
  readonly files: ReadonlyMap<string, string>
  /** Makes the gateway serve by it; resolves to the settings that need a start. */
  readonly apply: (config: GatewayConfig) => Promise<readonly string[]>
}

/**
 * Reads the configuration again when one of its files changes, and at SIGHUP. A configuration with
 * anything wrong in it changes nothing; what is wrong stands in the log. On a terminal SIGHUP says
 * that the terminal is gone, and ends the process as ever.
 */
export function reloadOnChange({ file, env }: Pick<CommandInput, 'file' | 'env'>, parts: ReloadParts): void {
  const { log, files, apply } = parts
  let isReloading = false
  let wanted: string | undefined
  /**
   * Reloads that are asked for during another one are merged: the files are read once more, after
   * it.
   */
  const reload = (why: string) => {
    wanted = why
    if (!isReloading) void reloadWhileWanted()
  }
  const watch = watchFiles(() => reload('a file changed'))
  watch.watch(files)
  if (!process.stdout.isTTY) process.on('SIGHUP', () => reload('SIGHUP'))

  async function reloadWhileWanted(): Promise<void> {
    isReloading = true
    while (wanted !== undefined) {
      const why = wanted
      wanted = undefined
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
    const loaded = loadConfig(file, env)
    watch.watch(loaded.files)
    const faults = (loaded.ok ? failingTests(loaded.config) : loaded.diagnostics.filter(isError)).map(formatDiagnostic)
    if (!loaded.ok || faults.length > 0) {
      log.error('config.rejected', {
        why,
        faults,
        hint: 'the gateway serves as before; mend the file, and it is read again',
      })
      return
    }
    const needRestart = await apply(loaded.config)
    const warnings = loaded.warnings.map(formatDiagnostic)
    log.info('config.reloaded', { why, ...(warnings.length > 0 ? { warnings } : {}) })
    if (needRestart.length > 0)
      log.warn('config.needs_restart', { settings: needRestart, hint: 'these are as they were until the next start' })
  }
}

function isError({ severity }: Diagnostic): boolean {
  return severity === 'error'
}
