import { isObject } from '../core/json.ts'
import { type Options, readFlatToml } from './flat-toml.ts'
import { eachNamed, type GivenText } from './written-config.ts'
import { yamlMap } from './yaml-map.ts'

/** The kinds of sources. A later kind replaces the options of an earlier one. */
type Kind = 'file' | 'environment' | 'arguments'

interface Source {
  readonly kind: Kind
  readonly options: Options
}

/**
 * The options of all texts together, as oauth2-proxy combines them: arguments replace environment
 * variables, and these replace the file. A text may be TOML, lines of environment variables, a
 * Compose file, a Kubernetes manifest, or values of the Helm chart.
 * @param args arguments of the command line
 * @param service of the Compose file; absent: the one that runs oauth2-proxy
 * @throws {SyntaxError} names the text; the message quotes no value, because it may be a secret
 */
export function readOptionsOf(texts: readonly GivenText[], args: readonly string[] = [], service?: string): Options {
  const sources = eachNamed(texts, (text) => sourcesIn(text, service)).flat()
  const all = [...sources, { kind: 'arguments', options: optionsOfArguments(args) } as const]
  const order: readonly Kind[] = ['file', 'environment', 'arguments']
  return new Map(
    order.flatMap((kind) => all.filter((each) => each.kind === kind).flatMap(({ options }) => [...options])),
  )
}

const isVariable = /^(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*=/
const looksLikeYaml = /^\s*(?:---|["']?[\w.-]+["']?:(?:\s|$))/

/** The program with its flags, or flags alone, perhaps as a list in YAML. */
const isCommandLine = /^\s*(?:[\w./-]*oauth2-proxy\s|(?:- *)?["']?--[a-z])/

/** The words of a command over several lines. */
function wordsOfLines(text: string): readonly string[] {
  const lines = text.split(/\r?\n/).map((line) => line.replace(/^\s*- +|\\\s*$/g, ''))
  return wordsOf(lines.filter((line) => !/^\s*#/.test(line)).join(' '))
}

function sourcesIn(text: string, service: string | undefined): readonly Source[] {
  const lines = text.split(/\r?\n/).filter((line) => /^\s*[^\s#]/.test(line))
  const [first = ''] = lines
  // The names of oauth2-proxy in TOML are in lower case.
  if (/^\s*(?:export\s+)?[A-Z][A-Z0-9_]*=/.test(first))
    return [{ kind: 'environment', options: readEnvironment(lines) }]
  if (isCommandLine.test(first)) return [{ kind: 'arguments', options: optionsOfArguments(wordsOfLines(text)) }]
  if (looksLikeYaml.test(first)) return sourcesInYaml(text, service)
  return [{ kind: 'file', options: readFlatToml(text) }]
}

/** The options in lines `NAME=VALUE`, as in a file of environment variables. */
function readEnvironment(lines: readonly string[]): Options {
  const wrong = lines.findIndex((line) => !isVariable.test(line.trim()))
  if (wrong >= 0) throw new SyntaxError(`entry ${wrong + 1} is no environment variable: write NAME=VALUE`)
  return optionsOfVariables(
    lines.map((line) => {
      const [, name = '', value = ''] = /^\s*(?:export\s+)?([^=]+)=(.*)$/s.exec(line) ?? []
      return [name, unquoted(value.trim())]
    }),
  )
}

function unquoted(value: string): string {
  return /^"(.*)"$/s.exec(value)?.[1] ?? /^'(.*)'$/s.exec(value)?.[1] ?? value.replace(/\s+#.*$/, '')
}

const prefix = 'OAUTH2_PROXY_'

/** The options in environment variables, without the variables of other programs. */
function optionsOfVariables(variables: readonly (readonly [name: string, value: string])[]): Options {
  return new Map(
    variables.flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length).toLowerCase(), value] as const] : [],
    ),
  )
}

/** Flags that may be repeated. In the file, each is an option with a plural name. */
const plurals: ReadonlyMap<string, string> = new Map(
  [
    ...['allowed_group', 'api_route', 'cookie_domain', 'email_domain', 'exclude_logging_path', 'htpasswd_user_group'],
    ...['oidc_audience_claim', 'oidc_enabled_signing_alg', 'oidc_extra_audience', 'oidc_public_key_file'],
    ...['provider_ca_file', 'skip_auth_route', 'tls_cipher_suite', 'trusted_ip', 'trusted_proxy_ip', 'upstream'],
    'whitelist_domain',
  ].map((name) => [name, `${name}s`] as const),
)

/**
 * The options of a command line: `--name=value`, `--name value`, or `--name` for `true`. A flag
 * that is repeated is a list.
 */
function optionsOfArguments(args: readonly string[]): Options {
  const options = new Map<string, string | readonly string[]>()
  for (let at = 0; at < args.length; at++) {
    const [, flag, attached] = /^--?([A-Za-z][\w-]*)(?:=(.*))?$/s.exec(args[at] ?? '') ?? []
    // The program itself, or an argument that is no flag.
    if (flag === undefined) continue
    const next = args[at + 1]
    const isSeparate = attached === undefined && next !== undefined && !next.startsWith('-')
    if (isSeparate) at += 1
    const value = attached ?? (isSeparate ? next : 'true')
    const name = flag.toLowerCase().replaceAll('-', '_')
    const option = plurals.get(name) ?? name
    const earlier = options.get(option)
    const isList = plurals.has(name) || [...plurals.values()].includes(name)
    options.set(option, isList && earlier !== undefined ? [...[earlier].flat(), value].flatMap(members) : value)
  }
  return options
}

/** oauth2-proxy splits each value of a list at its commas. */
function members(value: string): readonly string[] {
  return value.split(',')
}

function sourcesInYaml(text: string, service: string | undefined): readonly Source[] {
  const document = yamlMap(text)
  if (isObject(document['services'])) return sourcesOfContainer(composeService(document['services'], service))
  if (document['kind'] !== undefined && document['spec'] !== undefined)
    return sourcesOfContainer(containerIn(document, service))
  if (['config', 'extraArgs', 'extraEnv', 'alphaConfig'].some((name) => document[name] !== undefined))
    return sourcesOfHelm(document)
  if (['upstreamConfig', 'injectRequestHeaders', 'injectResponseHeaders', 'providers'].some((name) => name in document))
    throw new SyntaxError(
      'it is an alpha configuration (YAML), which import does not support; docs/migrating/oauth2-proxy.md has a table',
    )
  throw new SyntaxError(
    'it is YAML, but neither a Compose file, nor a Kubernetes manifest, nor values of the Helm chart',
  )
}

/** A service of Compose, or a container of Kubernetes, that may run oauth2-proxy. */
type Container = Readonly<Record<string, unknown>>

function composeService(services: Readonly<Record<string, unknown>>, wanted: string | undefined): Container {
  return chosen(
    Object.entries(services).flatMap(([name, service]) => (isObject(service) ? [[name, service] as const] : [])),
    wanted,
  )
}

/**
 * The container anywhere in the specification of a manifest: of a pod, a deployment, a cron job.
 */
function containerIn(document: Readonly<Record<string, unknown>>, wanted: string | undefined): Container {
  const containers: (readonly [string, Container])[] = []
  const look = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(look)
    if (!isObject(value)) return
    if (typeof value['image'] === 'string') containers.push([String(value['name']), value])
    Object.values(value).forEach(look)
  }
  look(document['spec'])
  return chosen(containers, wanted)
}

function chosen(
  all: readonly (readonly [name: string, container: Container])[],
  wanted: string | undefined,
): Container {
  const isProxy = ([name, { image }]: readonly [string, Container]) =>
    wanted === undefined ? /oauth2[-_]?proxy/i.test(String(image ?? '')) : name === wanted
  const [found, ...more] = all.filter(isProxy)
  const names = all.map(([name]) => name).join(', ')
  if (found === undefined)
    throw new SyntaxError(
      `no service ${wanted === undefined ? 'has an image of oauth2-proxy' : `is called ${wanted}`}: there are ${names}`,
    )
  if (more.length > 0)
    throw new SyntaxError(
      `several services run oauth2-proxy: name one with --service: ${[found, ...more].map(([name]) => name).join(', ')}`,
    )
  return found[1]
}

function sourcesOfContainer({
  environment,
  env,
  env_file,
  envFrom,
  command,
  entrypoint,
  args,
}: Container): readonly Source[] {
  for (const [name, value] of Object.entries({ env_file, envFrom }))
    if (value !== undefined)
      throw new SyntaxError(
        `${name} names variables that are not here: give import a file with them, and remove ${name} from a copy`,
      )
  return [
    { kind: 'environment', options: optionsOfVariables([...variablesOf(environment), ...variablesOf(env)]) },
    { kind: 'arguments', options: optionsOfArguments([entrypoint, command, args].flatMap(wordsOf)) },
  ]
}

/** `NAME: VALUE`, a list of `NAME=VALUE`, or a list of `{ name, value }`. */
function variablesOf(variables: unknown): (readonly [string, string])[] {
  if (isObject(variables)) return Object.entries(variables).map(([name, value]) => [name, textOf(value)])
  if (!Array.isArray(variables)) return []
  return variables.map((entry: unknown) => {
    // `valueFrom` names a Kubernetes Secret or ConfigMap, which import cannot read.
    if (isObject(entry))
      return [
        String(entry['name']),
        entry['value'] === undefined ? `\${${String(entry['name'])}}` : textOf(entry['value']),
      ]
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(String(entry)) ?? []
    return [name, value]
  })
}

function textOf(value: unknown): string {
  return value === null || value === undefined ? '' : String(value)
}

/** The words of a command, which may be one text, as a shell reads them. */
function wordsOf(command: unknown): readonly string[] {
  if (Array.isArray(command)) return command.map(textOf)
  const words = textOf(command).matchAll(/(?:[^\s"']+|"(?:\\.|[^"\\])*"|'[^']*')+/g)
  return [...words].map(([word]) =>
    word.replaceAll(/"((?:\\.|[^"\\])*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ''),
  )
}

/** The file that the chart makes when the values have no `configFile`. */
const chartFile: Options = new Map<string, string | readonly string[]>([
  ['email_domains', ['*']],
  ['upstreams', ['file:///dev/null']],
])

/** The sources in values of the Helm chart of oauth2-proxy. */
function sourcesOfHelm({
  config,
  extraArgs,
  extraEnv,
  alphaConfig,
}: Readonly<Record<string, unknown>>): readonly Source[] {
  const { configFile, clientID, clientSecret, cookieSecret, cookieName, existingSecret } = isObject(config)
    ? config
    : {}
  const credentials = { client_id: clientID, client_secret: clientSecret, cookie_secret: cookieSecret }
  const given = Object.entries({ ...credentials, cookie_name: cookieName }).flatMap(([name, value]) => {
    // It is in a Kubernetes Secret, which import cannot read.
    const isElsewhere = value === undefined && existingSecret !== undefined && name in credentials
    return isElsewhere ? [[name, `\${${name}}`] as const] : value === undefined ? [] : [[name, textOf(value)] as const]
  })
  const isAlpha = isObject(alphaConfig) && alphaConfig['enabled'] === true
  if (isAlpha)
    throw new SyntaxError(
      'alphaConfig is on, which import does not support; docs/migrating/oauth2-proxy.md has a table',
    )
  const flags = isObject(extraArgs)
    ? Object.entries(extraArgs).flatMap(([name, value]) => [value].flat().map((each) => `--${name}=${textOf(each)}`))
    : wordsOf(extraArgs)
  return [
    { kind: 'file', options: typeof configFile === 'string' ? readFlatToml(configFile) : chartFile },
    { kind: 'environment', options: new Map(given) },
    { kind: 'environment', options: optionsOfVariables(variablesOf(extraEnv)) },
    { kind: 'arguments', options: optionsOfArguments(flags) },
  ]
}
