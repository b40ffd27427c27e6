import { claimsNeeded } from '../config/claims-in-use.ts'
import { describeAssertion, readClientAssertion } from '../config/client-assertion.ts'
import type { Diagnostic } from '../config/document/diagnostics.ts'
import { proxyFor, proxyText } from '../config/hosts.ts'
import { loadConfig, type LoadResult } from '../config/load.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import {
  fixedClaims,
  harmOfOfflineAccess,
  lackOfOauth2,
  offlineAccess,
  providerKind,
  type ProviderKind,
} from '../config/provider-kind.ts'
import { durationText } from '../config/quantities.ts'
import {
  registrationFile,
  registrationsOf,
  registrationsText,
  signedIdentityFacts,
  signedIdentityText,
} from '../config/registration.ts'
import { parseKnownVersion, type ReadFor } from '../config/setting-versions.ts'
import { printable } from '../core/errors.ts'
import { failingTests } from '../explain/embedded-tests.ts'
import {
  CallFault,
  type CommandInput,
  configOption,
  faultOf,
  fileHint,
  formatOption,
  formatOf,
  jsonText,
  reader,
  readOptions,
  takeNone,
} from './command.ts'
import { differencesText, registrationDifferences } from './register.ts'
import { countOf, gitHubCommand, formatDiagnostics } from './show-diagnostics.ts'

const formats = ['text', 'json', 'github'] as const
export type CheckFormat = (typeof formats)[number]

const options = {
  ...configOption,
  ...formatOption,
  for: { type: 'string' },
  registration: { type: 'boolean', default: false },
  state: { type: 'string' },
} as const

/** Reads the arguments of `gatehouse check`. */
export const readCheckCall = reader((argv) => {
  const { values, positionals } = readOptions(argv, options)
  const format = formatOf(values.format, formats)
  takeNone(positionals, fileHint)
  const { for: version } = values
  const fault = faultOf(parseKnownVersion, version)
  if (fault !== undefined) throw new CallFault(`--for: ${fault}`)
  const { registration, state = registrationFile(values.config) } = values
  if (!registration && values.state !== undefined) throw new CallFault('--state needs --registration')
  const readFor = version === undefined ? {} : { version }
  return (terminal) => check({ ...terminal, file: values.config }, format, readFor, registration ? state : undefined)
})

/**
 * `gatehouse check`: prints all errors of the file, runs its embedded tests, and prints what to
 * register at the provider.
 * @param state the file that says where the client is registered: compares what is registered there
 * @throws {OperatorError} when the registration cannot be read
 */
export async function check(
  input: CommandInput,
  format: CheckFormat = 'text',
  readFor: ReadFor = {},
  state?: string,
): Promise<number> {
  const checked = checkFile(input, readFor)
  const { config } = checked
  const registration =
    state === undefined || config === undefined ? undefined : await registrationDifferences(config, state)
  print[format]({ ...checked, registration }, input)
  return config === undefined || registration?.some(({ isFault }) => isFault) === true ? 1 : 0
}

interface CheckResult {
  readonly file: string
  /** Errors and warnings, and one error for each embedded test that fails. */
  readonly diagnostics: readonly Diagnostic[]
  readonly sources: LoadResult['sources']
  /** How many embedded tests were run; 0 when the file has errors, because then none is run. */
  readonly tests: number
  /** `undefined` when the file has errors or a test fails. */
  readonly config: GatewayConfig | undefined
  /** The version of Gatehouse that the file is checked for, if it is named. */
  readonly version: string | undefined
  /** How the registration differs from what is needed. Absent: it was not read. */
  readonly registration?: Awaited<ReturnType<typeof registrationDifferences>> | undefined
}

function checkFile({ file, env }: CommandInput, readFor: ReadFor): CheckResult {
  const loaded = loadConfig(file, env, { ...readFor, isBeforeStart: true })
  const common = { file, sources: loaded.sources, version: readFor.version }
  if (!loaded.ok) return { ...common, diagnostics: loaded.diagnostics, tests: 0, config: undefined }
  const { config, warnings } = loaded
  const failures = failingTests(config)
  const tests = config.upstreams.reduce((count, upstream) => count + upstream.tests.length, 0)
  const diagnostics = [...warnings, ...failures]
  return { ...common, diagnostics, tests, config: failures.length > 0 ? undefined : config }
}

/**
 * The scopes that a sign-in requests without `scopes`. `check` does not read the
 * provider's metadata, so it cannot always give the final list.
 */
const defaultScopes: Readonly<Record<ProviderKind, string>> = {
  keycloak: 'openid profile email',
  cognito: 'openid profile email',
  entra: 'openid profile email offline_access',
  google: 'openid profile email, with access_type=offline and prompt=consent',
  other:
    'openid profile email, and offline_access unless the provider lists its scopes without it (gatehouse doctor shows which)',
}

const groupsNote =
  ' Rules or headers read groups, which many providers send only with a scope of that name: gatehouse doctor shows whether this one has it.'

/**
 * The scopes that a sign-in requests, and a note when the provider may require consent before it
 * issues a refresh token. With `kind: oauth2` there are no default scopes, but other limits.
 */
function providerNote(
  { setting, issuer, scopes, authorizationParams, oauth2, idTokenClaims, claimsFrom }: ProviderConfig,
  readsGroups: boolean,
): string {
  if (oauth2 !== undefined)
    return `\nThe provider issues no ID Tokens (${setting}.kind: oauth2), so it has ${lackOfOauth2}.\n`
  const kind = providerKind(issuer)
  const isFromElsewhere = [...idTokenClaims, ...claimsFrom.map(({ name }) => name)].includes('groups')
  const lacksGroups =
    readsGroups && !isFromElsewhere && fixedClaims(issuer) === undefined && scopes?.includes('groups') !== true
  const groups = lacksGroups ? groupsNote : ''
  if (scopes === undefined)
    return `\nWithout ${setting}.scopes, the gateway requests the scopes ${defaultScopes[kind]}.${groups}\n`
  const note = groups && `\n${groups.trim()}\n`
  const prompts = authorizationParams['prompt']?.split(' ') ?? []
  if (harmOfOfflineAccess(kind) !== undefined || !scopes.includes(offlineAccess) || prompts.includes('consent'))
    return note
  return `${note}\nIf the log says provider.no_refresh_token after a sign-in, set ${setting}.authorization_params: { prompt: consent }.\n`
}

/** The proxy for requests to the provider, if there is one. */
function proxyNote({ issuer, egressProxy }: ProviderConfig): string {
  const proxy = proxyFor(new URL(issuer), egressProxy)
  return proxy === undefined ? '' : `\nThe gateway reaches the provider through the proxy ${proxyText(proxy)}.\n`
}

/** The JWT that authenticates the client. A fault of it is among the warnings. */
function assertionNote({ clientAssertion }: ProviderConfig): string {
  const found = clientAssertion === undefined ? undefined : readClientAssertion(clientAssertion, Date.now())
  return found === undefined || 'why' in found
    ? ''
    : `\nThe gateway authenticates with the JWT in ${clientAssertion}, which the provider has to accept for this client: ${printable(describeAssertion(found))}.\n`
}

function forwardAuthNote({ upstreams }: GatewayConfig): string {
  const asked = upstreams.filter(({ forwardAuth }) => forwardAuth)
  if (asked.length === 0) return ''
  const names = (of: typeof asked) => of.map(({ name }) => name).join(', ')
  const withSecrets = asked.filter(({ serviceAccounts }) => serviceAccounts !== undefined)
  const secrets =
    withSecrets.length === 0
      ? ''
      : ` Let that proxy remove Authorization from the requests of ${names(withSecrets)}: it may contain the secret of a service account.`
  return `\nAnother proxy carries the requests of ${names(asked)} (forward_auth). After a logout the gateway refuses further requests, but it cannot close WebSockets and event streams that are open in that proxy.${secrets}\n`
}

function keysNote({ upstreams, session }: GatewayConfig): string {
  const withKeys = upstreams.flatMap(({ name, keys }) => (keys === undefined ? [] : { name, keys }))
  if (withKeys.length === 0) return ''
  const limit = durationText(session.absoluteTimeoutMs)
  return `\nPeople make keys for ${withKeys.map(({ name }) => name).join(', ')}. Each asks the provider for a refresh token of its own (offline_access). Where it issues none, nothing tells the gateway later that an account is gone, and a key lasts for ${limit} at most (session.absolute_timeout): gatehouse doctor shows what the provider says.\n`
}

const print: Readonly<Record<CheckFormat, (checked: CheckResult, input: CommandInput) => void>> = {
  text({ file, diagnostics, sources, tests, config, version, registration }, { out, err, paintOut, paintErr }) {
    err(formatDiagnostics(diagnostics, sources, paintErr))
    const forVersion = version === undefined ? '' : ` for Gatehouse ${version}`
    if (config === undefined) return err(`\n${file} is invalid${forVersion}: ${countOf(diagnostics)}\n`)
    const passed = tests === 0 ? '' : `; its ${tests === 1 ? 'test passes' : `${tests} tests pass`}`
    const message = `${file} is valid${forVersion}${passed}.`
    const readsGroups = config.upstreams.flatMap(claimsNeeded).some(([name]) => name === 'groups')
    const notes = config.providers
      .map((provider) => providerNote(provider, readsGroups) + proxyNote(provider) + assertionNote(provider))
      .join('')
    out(
      `${paintOut?.('green', message) ?? message}\n\n${registrationsText(config)}${signedIdentityText(config)}${notes}${forwardAuthNote(config)}${keysNote(config)}`,
    )
    if (registration !== undefined)
      out(
        registration.length === 0
          ? '\nThe provider has registered all of it.\n'
          : `\nThe registration at the provider:\n${differencesText(registration)}`,
      )
  },
  json({ file, diagnostics, tests, config, registration }, { out }) {
    const signed_identity = config && signedIdentityFacts(config)
    const register = config && { register: registrationsOf(config), ...(signed_identity && { signed_identity }) }
    out(jsonText({ file, good: config !== undefined, tests, diagnostics, ...register, registration }))
  },
  github({ diagnostics }, { out }) {
    for (const diagnostic of diagnostics) out(`${gitHubCommand(diagnostic)}\n`)
  },
}
