import { loadConfig, type LoadResult } from '../config/load.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { failingTests } from '../explain/embedded-tests.ts'
import type { CommandInput } from './command.ts'
import { formatDiagnostics } from './show-diagnostics.ts'

type LoadInput = Pick<CommandInput, 'file' | 'env' | 'err' | 'paintErr'>

/** Loads the configuration. Prints its errors and returns `undefined` when it is invalid. */
export function loadOrReport(input: LoadInput): GatewayConfig | undefined {
  const loaded = loadAndReport(input, 'faults')
  return loaded.ok ? loaded.config : undefined
}

/**
 * Loads the configuration and prints its diagnostics: with `all` also warnings, which only a
 * command that serves or examines the configuration prints.
 */
export function loadAndReport({ file, env, err, paintErr }: LoadInput, printed: 'all' | 'faults'): LoadResult {
  const loaded = loadConfig(file, env)
  const diagnostics = loaded.ok ? (printed === 'all' ? loaded.warnings : []) : loaded.diagnostics
  if (diagnostics.length > 0) err(formatDiagnostics(diagnostics, loaded.sources, paintErr))
  return loaded
}

/**
 * Loads a configuration that can be served: it has no errors, and its embedded tests pass.
 * Otherwise prints the errors and returns `undefined`.
 */
export function loadServableOrReport(input: LoadInput): Extract<LoadResult, { ok: true }> | undefined {
  const loaded = loadAndReport(input, 'all')
  if (!loaded.ok) return undefined
  const failures = failingTests(loaded.config)
  if (failures.length === 0) return loaded
  input.err(formatDiagnostics(failures, loaded.sources, input.paintErr))
  return undefined
}
