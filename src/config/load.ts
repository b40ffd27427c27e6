import { runAtOnce, type Steps } from '../core/steps.ts'
import { buildConfig } from './build/build.ts'
import { checkConfig } from './checks/checks.ts'
import type { Diagnostic, Sources } from './document/diagnostics.ts'
import { withIncluded } from './document/include.ts'
import { readYaml } from './document/read-yaml.ts'
import { type Environment, Report, type SecretFile } from './document/report.ts'
import { compiledSchema } from './document/schema-validator.ts'
import { validate } from './document/schema.ts'
import type { GatewayConfig } from './model/gateway.ts'
import { withPresets } from './presets.ts'
import { type ReadFor, reportNewer } from './setting-versions.ts'

/** A valid configuration, or all diagnostics. Both with the sources that were read. */
export type LoadResult = (
  | { readonly ok: true; readonly config: GatewayConfig; readonly warnings: readonly Diagnostic[] }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] }
) & {
  readonly sources: Sources
  /**
   * The files and folders that the configuration depends on, each with its stamp (see `stampOf`)
   * from before it was read. The configuration is unchanged while all stamps are.
   */
  readonly files: ReadonlyMap<string, string>
  /** The files among them that contain secrets. */
  readonly secretFiles: readonly SecretFile[]
}

/**
 * Reads a configuration and everything that it refers to: included files, secrets, certificates.
 * Does not throw, whatever the file contains.
 */
export function loadConfig(file: string, env: Environment, readFor?: ReadFor): LoadResult {
  return runAtOnce(loadConfigInSteps(file, env, readFor))
}

/** Reads a configuration that is not in a file yet. */
export function loadText(text: string, env: Environment): LoadResult {
  return runAtOnce(loadConfigInSteps('', env, {}, text))
}

/** The steps of `loadConfig`, for a process that serves requests. */
export function* loadConfigInSteps(
  file: string,
  env: Environment,
  readFor: ReadFor = {},
  given?: string,
): Steps<LoadResult> {
  const report = new Report(file, env, readFor)
  const config = yield* read(file, report, readFor, given)
  const { diagnostics, sources, files, secretFiles } = report
  return config === undefined || report.hasErrors
    ? { ok: false, diagnostics, sources, files, secretFiles }
    : { ok: true, config, warnings: diagnostics, sources, files, secretFiles }
}

function* read(
  file: string,
  report: Report,
  readFor: ReadFor,
  given: string | undefined,
): Steps<GatewayConfig | undefined> {
  const document = yield* readYaml(file, report.at(''), given)
  if (document === undefined) return undefined
  yield
  const written = yield* withIncluded(document, file, report)
  if (readFor.version !== undefined) reportNewer(written, compiledSchema().schema, report, readFor.version)
  const whole = withPresets(written, report)
  yield
  const settings = yield* validate(whole, report)
  yield
  const config = yield* buildConfig(file, settings, report.at(''))
  yield* checkConfig(config, report, settings)
  return config
}
