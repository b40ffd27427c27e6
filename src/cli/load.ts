import { formatDiagnostics } from '../config/diagnostics.ts'
import { loadConfig } from '../config/load.ts'
import type { GatewayConfig } from '../config/model.ts'
import type { CommandInput } from './main.ts'

/** The configuration, or `undefined` after everything that is wrong with it has been said. */
export function loadOrSay({ file, env, err }: Pick<CommandInput, 'file' | 'env' | 'err'>): GatewayConfig | undefined {
  const loaded = loadConfig(file, env)
  const diagnostics = loaded.ok ? loaded.warnings : loaded.diagnostics
  if (diagnostics.length > 0) err(`${formatDiagnostics(diagnostics)}\n`)
  return loaded.ok ? loaded.config : undefined
}
