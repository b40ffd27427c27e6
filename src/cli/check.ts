import type { Diagnostic } from '../config/document/diagnostics.ts'
import { loadConfig, type LoadResult } from '../config/load.ts'
import type { GatewayConfig } from '../config/model.ts'
import { offlineAccess, providerKind, type ProviderKind } from '../config/provider-kind.ts'
import { registrationOf, registrationText } from '../config/registration.ts'
import { failingTests } from '../explain/embedded-tests.ts'
import {
  type Call,
  type CommandInput,
  configOption,
  formatFault,
  formatOption,
  readOptions,
  unexpected,
} from './command.ts'
import { countOf, gitHubCommand, shownDiagnostics } from './show-diagnostics.ts'

const formats = ['text', 'json', 'github'] as const
export type CheckFormat = (typeof formats)[number]

/** What stands behind `gatehouse check`. */
export function readCheckCall(argv: readonly string[]): Call {
  const read = readOptions(argv, { ...configOption, ...formatOption })
  if (!read.ok) return read
  const { config: file, format } = read.values
  const fault = formatFault(format, formats) ?? unexpected(read.positionals)
  if (fault !== undefined) return { fault }
  return { carryOut: (terminal) => check({ ...terminal, file }, format as CheckFormat) }
}

/**
 * `gatehouse check`: everything that is wrong with the file, then its own tests; and what the
 * provider has to know of us.
 */
export async function check(input: CommandInput, format: CheckFormat = 'text'): Promise<number> {
  const checked = checkedFile(input)
  say[format](checked, input)
  return checked.config === undefined ? 1 : 0
}

interface Checked {
  readonly file: string
  /** All that there is to say, tests that fail included. */
  readonly diagnostics: readonly Diagnostic[]
  readonly sources: LoadResult['sources']
  /** How many tests stand in the file; 0 when it has errors, for they are not run then. */
  readonly tests: number
  /** Absent when something is wrong with it. */
  readonly config: GatewayConfig | undefined
}

function checkedFile({ file, env }: CommandInput): Checked {
  const loaded = loadConfig(file, env)
  const { sources } = loaded
  if (!loaded.ok) return { file, diagnostics: loaded.diagnostics, sources, tests: 0, config: undefined }
  const { config, warnings } = loaded
  const failures = failingTests(config)
  const tests = config.upstreams.reduce((count, upstream) => count + upstream.tests.length, 0)
  const diagnostics = [...warnings, ...failures]
  return { file, diagnostics, sources, tests, config: failures.length > 0 ? undefined : config }
}

/**
 * What is asked for without `provider.scopes`. The provider is not asked here, so that its metadata
 * may still decide.
 */
const defaultScopes: Readonly<Record<ProviderKind, string>> = {
  keycloak: 'openid profile email',
  google: 'openid profile email, with access_type=offline and prompt=consent',
  other:
    'openid profile email, and offline_access unless the provider lists its scopes without it (gatehouse doctor shows which)',
}

/**
 * What a sign-in asks for, and what cannot be known before it: whether the provider gives a refresh
 * token without consent.
 */
function scopesNote({ provider: { issuer, scopes, authorizationParams } }: GatewayConfig): string {
  const kind = providerKind(issuer)
  if (scopes === undefined) return `\nWithout provider.scopes a sign-in asks for ${defaultScopes[kind]}.\n`
  const prompts = authorizationParams['prompt']?.split(' ') ?? []
  if (kind !== 'other' || !scopes.includes(offlineAccess) || prompts.includes('consent')) return ''
  return '\nIf the log says provider.no_refresh_token after a sign-in, set provider.authorization_params: { prompt: consent }.\n'
}

const say: Readonly<Record<CheckFormat, (checked: Checked, input: CommandInput) => void>> = {
  text({ file, diagnostics, sources, tests, config }, { out, err, paintOut, paintErr }) {
    err(shownDiagnostics(diagnostics, sources, paintErr))
    if (config === undefined) return err(`\n${file} is not good: ${countOf(diagnostics)}\n`)
    const passed = tests === 0 ? '' : `; its ${tests === 1 ? 'test passes' : `${tests} tests pass`}`
    const good = `${file} is good${passed}.`
    out(`${paintOut?.('green', good) ?? good}\n\n${registrationText(config)}${scopesNote(config)}`)
  },
  json({ file, diagnostics, tests, config }, { out }) {
    const register = config === undefined ? {} : { register: registrationOf(config) }
    out(
      `${JSON.stringify({ version: 1, file, good: config !== undefined, tests, diagnostics, ...register }, null, 2)}\n`,
    )
  },
  github({ diagnostics }, { out }) {
    for (const diagnostic of diagnostics) out(`${gitHubCommand(diagnostic)}\n`)
  },
}
