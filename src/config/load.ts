import { buildConfig } from './build.ts'
import { checkConfig } from './checks.ts'
import type { Diagnostic } from './diagnostics.ts'
import { withIncluded } from './include.ts'
import type { GatewayConfig } from './model.ts'
import { readYaml } from './read-yaml.ts'
import { Report } from './report.ts'
import { validate } from './schema.ts'
import type { Environment } from './secrets.ts'
import type { Sources } from './sources.ts'

/** A configuration that can be run, or everything that is wrong with it, warnings included; and the text that it was read from. */
export type LoadResult = (
  | { readonly ok: true; readonly config: GatewayConfig; readonly warnings: readonly Diagnostic[] }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] }
) & {
  readonly sources: Sources
  /** The files and folders that the configuration is made of: while none of them changes, nor does it. */
  readonly files: readonly string[]
}

/** Reads a configuration with all that it refers to: included files, secrets, certificates. Whatever is in it, this does not throw. */
export function loadConfig(file: string, env: Environment): LoadResult {
  const report = new Report(file)
  const config = read(file, env, report)
  const { diagnostics, sources, files } = report
  return config === undefined || report.hasErrors
    ? { ok: false, diagnostics, sources, files }
    : { ok: true, config, warnings: diagnostics, sources, files }
}

function read(file: string, env: Environment, report: Report): GatewayConfig | undefined {
  const document = readYaml(file, '', report)
  if (document === undefined) return undefined
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    report.error('', 'is not a map of settings', 'a configuration begins with "version: 1"')
    return undefined
  }
  const written = validate(withIncluded(document, file, report), report)
  const config = buildConfig(file, written, { env, report })
  checkConfig(config, report, written)
  return config
}
