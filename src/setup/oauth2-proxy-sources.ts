import { isObject, type JsonObject } from '../core/json.ts'
import { type Options, readFlatToml } from './flat-toml.ts'
import {
  argumentsSource,
  type Dialect,
  environmentSource,
  readOptions,
  type Source,
  variablesOf,
  wordsOf,
} from './option-sources.ts'
import type { GivenText } from './written-config.ts'

/**
 * The options of oauth2-proxy in all texts together. A text may also have the values of its Helm
 * chart.
 * @throws {SyntaxError} as `readOptions`
 */
export function readOptionsOf(texts: readonly GivenText[], args: readonly string[] = [], service?: string): Options {
  return readOptions(texts, args, service, dialect)
}

const prefix = 'OAUTH2_PROXY_'

/** Flags that may be repeated. In the file, each is an option with a plural name. */
const plurals: ReadonlyMap<string, string> = new Map(
  [
    ...['allowed_group', 'api_route', 'cookie_domain', 'email_domain', 'exclude_logging_path', 'htpasswd_user_group'],
    ...['oidc_audience_claim', 'oidc_enabled_signing_alg', 'oidc_extra_audience', 'oidc_public_key_file'],
    ...['provider_ca_file', 'skip_auth_route', 'tls_cipher_suite', 'trusted_ip', 'trusted_proxy_ip', 'upstream'],
    'whitelist_domain',
  ].map((name) => [name, `${name}s`] as const),
)

const dialect: Dialect = {
  program: 'oauth2-proxy',
  image: /oauth2[-_]?proxy/i,
  optionOf: (name) => (name.startsWith(prefix) ? name.slice(prefix.length).toLowerCase() : undefined),
  flagOf: (flag) => {
    const name = flag.replaceAll('-', '_')
    const option = plurals.get(name) ?? name
    return { option, isList: plurals.has(name) || [...plurals.values()].includes(name) }
  },
  readFile: readFlatToml,
  readDocument: (document) => {
    if (['config', 'extraArgs', 'extraEnv', 'alphaConfig'].some((name) => document[name] !== undefined))
      return sourcesOfHelm(document)
    if (
      ['upstreamConfig', 'injectRequestHeaders', 'injectResponseHeaders', 'providers'].some((name) => name in document)
    )
      throw new SyntaxError(
        'it is an alpha configuration (YAML), which import does not support; docs/migrating/oauth2-proxy.md has a table',
      )
    throw new SyntaxError(
      'it is YAML, but neither a Compose file, nor a Kubernetes manifest, nor values of the Helm chart',
    )
  },
}

/** The file that the chart makes when the values have no `configFile`. */
const chartFile: Options = new Map<string, string | readonly string[]>([
  ['email_domains', ['*']],
  ['upstreams', ['file:///dev/null']],
])

/** The sources in values of the Helm chart of oauth2-proxy. */
function sourcesOfHelm({ config, extraArgs, extraEnv, alphaConfig }: JsonObject): readonly Source[] {
  const { configFile, clientID, clientSecret, cookieSecret, cookieName, existingSecret } = isObject(config)
    ? config
    : {}
  const credentials = { client_id: clientID, client_secret: clientSecret, cookie_secret: cookieSecret }
  const given = Object.entries({ ...credentials, cookie_name: cookieName }).flatMap(([name, value]) => {
    // It is in a Kubernetes Secret, which import cannot read.
    const isElsewhere = value === undefined && existingSecret !== undefined && name in credentials
    return isElsewhere
      ? [[name, `\${${name}}`] as const]
      : value === undefined
        ? []
        : [[name, String(value ?? '')] as const]
  })
  const isAlpha = isObject(alphaConfig) && alphaConfig['enabled'] === true
  if (isAlpha)
    throw new SyntaxError(
      'alphaConfig is on, which import does not support; docs/migrating/oauth2-proxy.md has a table',
    )
  const flags = isObject(extraArgs)
    ? Object.entries(extraArgs).flatMap(([name, value]) =>
        [value].flat().map((each) => `--${name}=${String(each ?? '')}`),
      )
    : wordsOf(extraArgs)
  return [
    { kind: 'file', options: typeof configFile === 'string' ? readFlatToml(configFile) : chartFile },
    { kind: 'environment', options: new Map(given) },
    environmentSource(variablesOf(extraEnv), dialect),
    argumentsSource(flags, dialect),
  ]
}
