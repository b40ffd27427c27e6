import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Difference, differences } from '../../packages/setup/client-metadata.ts'
import {
  clientSecretPlace,
  type Clients,
  readClients,
  type Registered,
  type RegisteredClient,
  Registrar,
  withClientId,
} from '../../packages/setup/registration.ts'
import { loadConfig } from '../config/load.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import { publishedFolderOf } from '../config/published-folders.ts'
import { registrationFile } from '../config/registration.ts'
import { OperatorError, printable } from '../core/errors.ts'
import {
  CallFault,
  type CommandInput,
  configOption,
  fileHint,
  formatOption,
  isJson,
  jsonText,
  reader,
  readOptions,
  takeNone,
} from './command.ts'
import { readText, replaceText } from './given-file.ts'
import { formatDiagnostics } from './show-diagnostics.ts'

const options = {
  ...configOption,
  ...formatOption,
  provider: { type: 'string' },
  token: { type: 'string' },
  state: { type: 'string' },
  update: { type: 'boolean', default: false },
  'dry-run': { type: 'boolean', default: false },
  write: { type: 'boolean', default: false },
} as const

interface RegisterTask {
  readonly provider: string | undefined
  /** A file with the initial access token. */
  readonly token: string | undefined
  readonly state: string | undefined
  readonly isUpdate: boolean
  readonly isDryRun: boolean
  /** Whether the new `client_id` is written into the configuration. */
  readonly writes: boolean
  readonly asJson: boolean
}

/** Reads the arguments of `gatehouse register`. */
export const readRegisterCall = reader((argv) => {
  const { values, positionals } = readOptions(argv, options)
  takeNone(positionals, fileHint)
  const { provider, token, state, update: isUpdate, 'dry-run': isDryRun, write: writes } = values
  if (isUpdate && token !== undefined) throw new CallFault('--token is for a new registration, not for --update')
  const task = { provider, token, state, isUpdate, isDryRun, writes, asJson: isJson(values.format) }
  return (terminal) => register(task, { ...terminal, file: values.config })
})

/**
 * `gatehouse register`: registers the gateway as a client of its provider (RFC 7591), or changes
 * its registration (RFC 7592).
 * @throws {OperatorError} when the provider refuses, or a file cannot be read or written
 */
async function register(task: RegisterTask, input: CommandInput): Promise<number> {
  const loaded = loadConfig(input.file, input.env, { isUnregistered: true })
  if (!loaded.ok) {
    input.err(`${formatDiagnostics(loaded.diagnostics, loaded.sources, input.paintErr)}\n`)
    return 1
  }
  const { config } = loaded
  const provider = chosen(config, task.provider)
  const state = task.state ?? registrationFile(input.file)
  const folder = publishedFolderOf(state, config)
  if (folder !== undefined)
    throw new OperatorError(
      `${state} would be published, because a rule responds with the files of ${folder}: name another file with --state`,
    )
  const registrar = new Registrar(provider, config)
  const invocation = { registrar, provider, task, input, state }
  try {
    return await (task.isUpdate ? update(invocation) : registerNew(invocation))
  } finally {
    await registrar.close()
  }
}

interface Invocation {
  readonly registrar: Registrar
  readonly provider: ProviderConfig
  readonly task: RegisterTask
  readonly input: CommandInput
  /** The path of the file that says where clients are registered. */
  readonly state: string
}

function chosen({ providers }: GatewayConfig, name: string | undefined): ProviderConfig {
  const [first, ...others] = providers
  if (name === undefined && others.length === 0) return first
  const found = providers.find((provider) => provider.name === name)
  if (found !== undefined) return found
  const names = providers.map((provider) => provider.name).join(', ')
  throw new OperatorError(
    name === undefined ? `choose one with --provider: ${names}` : `no provider "${name}"; known: ${names}`,
  )
}

async function registerNew(invocation: Invocation): Promise<number> {
  const { registrar, provider, task, input, state } = invocation
  const known = readClients(state)
  if (Object.keys(known).some((issuer) => isSameIssuer(issuer, provider.issuer)))
    throw new OperatorError(`${state} has a client at ${provider.issuer} already: use --update, or another --state`)
  const wanted = await registrar.wanted()
  if (task.isDryRun) {
    input.out(jsonText({ register: wanted }))
    return 0
  }
  const token = task.token === undefined ? undefined : readText(task.token).trim()
  const place = secretPlaceOf(provider, input.file)
  // The file may be the only copy of the secret of another client.
  if ('file' in place && existsSync(place.file))
    throw new OperatorError(
      `${place.file} exists: use --update for the client that has this secret, or name another file in ${provider.setting}.client_secret`,
    )
  const registered = await registrar.register(wanted, token)
  // First, because the registration cannot be changed or removed without it.
  saveClient(state, known, provider.issuer, registered.client)
  const { client_id } = registered.client
  const lines = [`Registered at ${provider.issuer} as the client ${client_id}.`, ...saveSecret(registered, place)]
  if (registered.client.registration_access_token !== undefined)
    lines.push(`${state} has the token for --update and for gatehouse check --registration: keep it as a secret.`)
  if (provider.client_id !== client_id) lines.push(clientIdText(client_id, invocation))
  report(lines, differences(wanted, registered.metadata), invocation, { client_id })
  return 0
}

async function update(invocation: Invocation): Promise<number> {
  const { registrar, provider, task, input, state } = invocation
  const known = readClients(state)
  const client = clientAt(provider, known, state)
  const [before, wanted] = [await registrar.read(client), await registrar.wanted()]
  const about = { client_id: client.client_id }
  const found = differences(wanted, before.metadata)
  if (task.isDryRun || !found.some(({ isFault }) => isFault)) {
    const text = task.isDryRun ? 'Nothing is changed.' : 'Nothing has to be changed.'
    report([`The client ${client.client_id} at ${provider.issuer}. ${text}`], found, invocation, about)
    return 0
  }
  // A provider may have replaced the token when it was used (RFC 7592 §3).
  const current = { ...client, ...before.client }
  saveClient(state, known, provider.issuer, current)
  const after = await registrar.update(current, before, wanted)
  saveClient(state, known, provider.issuer, { ...current, ...after.client })
  const isNewSecret = after.client_secret !== before.client_secret
  const lines = [
    `Changed the client ${client.client_id} at ${provider.issuer}.`,
    ...(isNewSecret ? saveSecret(after, secretPlaceOf(provider, input.file)) : []),
  ]
  report(lines, differences(wanted, after.metadata), invocation, about)
  return 0
}

function clientAt({ issuer }: ProviderConfig, known: Clients, state: string): RegisteredClient {
  const [, client] = Object.entries(known).find(([each]) => isSameIssuer(each, issuer)) ?? []
  if (client !== undefined) return client
  throw new OperatorError(`${state} has no client at ${issuer}: run gatehouse register, or name its file with --state`)
}

/** `gatehouse check --registration`: what is registered, and not as the gateway needs it. */
export async function registrationDifferences(
  config: GatewayConfig,
  state: string,
): Promise<readonly (Difference & { readonly issuer: string })[]> {
  let known = readClients(state)
  const found: (Difference & { readonly issuer: string })[] = []
  for (const provider of config.providers) {
    const client = clientAt(provider, known, state)
    const registrar = new Registrar(provider, config)
    try {
      const [registered, wanted] = [await registrar.read(client), await registrar.wanted()]
      if (registered.client.registration_access_token !== undefined)
        known = saveClient(state, known, provider.issuer, { ...client, ...registered.client })
      found.push(...differences(wanted, registered.metadata).map((each) => ({ ...each, issuer: provider.issuer })))
    } finally {
      await registrar.close()
    }
  }
  return found
}

/** The lines about differences. */
export function differencesText(found: readonly Difference[]): string {
  return found
    .map(({ name, isFault, text }) => `  ${isFault ? 'differs' : 'note'}: ${name} ${printable(text)}\n`)
    .join('')
}

function report(
  lines: readonly string[],
  found: readonly Difference[],
  { task, input }: Invocation,
  about: object,
): void {
  if (task.asJson) input.out(jsonText({ ...about, differences: found }))
  const text = `${lines.join('\n')}\n${found.length === 0 ? '' : `As the provider has registered it:\n${differencesText(found)}`}`
  if (task.asJson) input.err(text)
  else input.out(text)
}

function clientIdText(client_id: string, { provider, task, input }: Invocation): string {
  const changed = withClientId(readText(input.file), provider.setting, client_id)
  if (!task.writes || changed === undefined)
    return `Write client_id: ${client_id} into ${input.file} (${provider.setting}); --write does it.`
  replaceText(input.file, changed)
  return `${input.file} has the client_id now.`
}

type SecretPlace = ReturnType<typeof clientSecretPlace>

function secretPlaceOf(provider: ProviderConfig, file: string): SecretPlace {
  const place = clientSecretPlace(readText(file), provider.setting)
  return 'file' in place ? { file: resolve(dirname(file), place.file) } : place
}

function saveSecret({ client_secret }: Registered, place: SecretPlace): readonly string[] {
  if (client_secret === undefined) return []
  // Within single quotes, a shell reads everything but a single quote as it is.
  const quoted = `'${client_secret.replaceAll("'", String.raw`'\''`)}'`
  if (!('file' in place)) return [`Its secret is shown only now: export ${place.env}=${quoted}`]
  replaceText(place.file, `${client_secret}\n`, 0o600)
  return [`Its secret is in ${place.file}.`]
}

/** A provider may add or remove the slash at the end of its issuer, and keeps its clients. */
function isSameIssuer(one: string, other: string): boolean {
  return one.replace(/\/$/, '') === other.replace(/\/$/, '')
}

/** Writes the file. Returns what is in it then. */
function saveClient(state: string, known: Clients, issuer: string, client: Clients[string]): Clients {
  const others = Object.entries(known).filter(([each]) => !isSameIssuer(each, issuer))
  const clients = Object.fromEntries([...others, [issuer, client]])
  replaceText(state, `${JSON.stringify({ version: 1, clients }, null, 2)}\n`, 0o600)
  return clients
}
