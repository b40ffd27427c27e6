import { loadConfig, type LoadResult } from '../config/load.ts'
import type { GatewayConfig } from '../config/model.ts'
import { failingTests } from '../explain/embedded-tests.ts'
import type { CommandInput } from './command.ts'
import { shownDiagnostics } from './show-diagnostics.ts'

type Asked = Pick<CommandInput, 'file' | 'env' | 'err' | 'paintErr'>

/** The configuration, or `undefined` after everything that is wrong with it has been said. */
export function loadOrSay(input: Asked): GatewayConfig | undefined {
  const loaded = loadAndSay(input, 'faults')
  return loaded.ok ? loaded.config : undefined
}

/**
 * The same with all that was read. What is unwise is said to whoever is about to serve by it, and
 * to nobody who asks for something else.
 */
export function loadAndSay({ file, env, err, paintErr }: Asked, said: 'all' | 'faults'): LoadResult {
  const loaded = loadConfig(file, env)
  const diagnostics = loaded.ok ? (said === 'all' ? loaded.warnings : []) : loaded.diagnostics
  if (diagnostics.length > 0) err(shownDiagnostics(diagnostics, loaded.sources, paintErr))
  return loaded
}

/**
 * What can be served by: without errors, and its own tests pass. Otherwise `undefined`, and what is
 * wrong has been said.
 */
export function loadServableOrSay(input: Asked): Extract<LoadResult, { ok: true }> | undefined {
  const loaded = loadAndSay(input, 'all')
  if (!loaded.ok) return undefined
  const failures = failingTests(loaded.config)
  if (failures.length === 0) return loaded
  input.err(shownDiagnostics(failures, loaded.sources, input.paintErr))
  return undefined
}
