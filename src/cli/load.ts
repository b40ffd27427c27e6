import { loadConfig, type LoadResult } from '../config/load.ts'
import type { GatewayConfig } from '../config/model.ts'
import type { CommandInput } from './command.ts'
import { shownDiagnostics } from './show-diagnostics.ts'

type Asked = Pick<CommandInput, 'file' | 'env' | 'err' | 'paintErr'>

/** The configuration, or `undefined` after everything that is wrong with it has been said. */
export function loadOrSay(input: Asked): GatewayConfig | undefined {
  const loaded = loadAndSay(input)
  return loaded.ok ? loaded.config : undefined
}

/** The same with all that was read; what is wrong or unwise has been said. */
export function loadAndSay({ file, env, err, paintErr }: Asked): LoadResult {
  const loaded = loadConfig(file, env)
  const diagnostics = loaded.ok ? loaded.warnings : loaded.diagnostics
  if (diagnostics.length > 0) err(shownDiagnostics(diagnostics, loaded.sources, paintErr))
  return loaded
}
