import { isObject, type JsonObject } from '../../../src/entries/import.ts'
import { type Options, readFlatToml } from '../common/flat-toml.ts'
import {
  argumentsSource,
  type Dialect,
  environmentSource,
  readOptions,
  type Source,
  variablesOf,
  wordsOf,
} from '../common/option-sources.ts'
import type { GivenText } from '../common/written-config.ts'

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
    ...['whitelist_domain', 'allowed_role', 'keycloak_group', 'google_group', 'gitlab_group', 'gitlab_project'],
    ...['github_user', 'entra_id_allowed_tenant', 'extra_jwt_issuer', 'redis_cluster_connection_url'],
    'redis_sentinel_connection_url',
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

/** Values of the chart that say nothing about who has access. */
const otherValues = new Set(
  `affinity alphaConfig annotations autoscaling checkDeprecation config customLabels deploymentAnnotations deploymentLabels
  dnsConfig dnsPolicy enableServiceLinks extraArgs extraContainers extraEnv extraInitContainers extraObjects
  extraVolumeMounts extraVolumes fullnameOverride gatewayApi global hostAlias hostAliases httpScheme image
  imagePullSecrets ingress initContainers kubeVersion lifecycle livenessProbe metrics nameOverride namespaceOverride
  networkPolicy nodeSelector podAnnotations podDisruptionBudget podLabels podSecurityContext priorityClassName
  proxyVarsAsSecrets readinessProbe redis redis-ha replicaCount resizePolicy resources revisionHistoryLimit
  securityContext service serviceAccount sessionStorage strategy terminationGracePeriodSeconds tolerations
  topologySpreadConstraints`.split(/\s+/),
)

const otherConfig = new Set(
  `annotations clientID clientSecret configFile cookieName cookieSecret existingSecret forceLegacyConfig google
  requiredSecretKeys secretKeys`.split(/\s+/),
)

/** The sources in values of the Helm chart of oauth2-proxy. */
function sourcesOfHelm(values: JsonObject): readonly Source[] {
  const { extraArgs, extraEnv, alphaConfig } = values
  const config = isObject(values['config']) ? values['config'] : {}
  if (isObject(alphaConfig) && alphaConfig['enabled'] === true)
    throw new SyntaxError(
      'alphaConfig is on, which import does not support; docs/migrating/oauth2-proxy.md has a table',
    )
  if ([values['envFrom'] ?? []].flat().length > 0)
    throw new SyntaxError('envFrom names variables that are not here: write them as extraEnv in a copy')
  const { configFile } = config
  const flags = isObject(extraArgs)
    ? Object.entries(extraArgs).flatMap(([name, value]) =>
        [value].flat().map((each) => `--${name}=${String(each ?? '')}`),
      )
    : wordsOf(extraArgs)
  return [
    { kind: 'file', options: typeof configFile === 'string' ? readFlatToml(configFile) : chartFile },
    { kind: 'environment', options: new Map([...credentialsIn(config), ...redisIn(values['sessionStorage'])]) },
    environmentSource(variablesOf(extraEnv), dialect),
    { kind: 'arguments', options: new Map(restrictionsIn(values, config)) },
    argumentsSource(flags, dialect),
  ]
}

type OptionPairs = readonly (readonly [option: string, value: string | readonly string[]])[]

function credentialsIn(config: JsonObject): OptionPairs {
  const { clientID, clientSecret, cookieSecret, cookieName, existingSecret } = config
  const credentials = { client_id: clientID, client_secret: clientSecret, cookie_secret: cookieSecret }
  return Object.entries({ ...credentials, cookie_name: cookieName }).flatMap(([name, value]): OptionPairs => {
    if (value !== undefined) return [[name, String(value ?? '')]]
    // It is in a Kubernetes Secret, which import cannot read.
    return existingSecret !== undefined && name in credentials ? [[name, `\${${name}}`]] : []
  })
}

/** What the chart writes about Redis. */
function redisIn(storage: unknown): OptionPairs {
  const { type, redis } = isObject(storage) ? storage : {}
  if (type !== 'redis') return []
  const { clientType, standalone, cluster, sentinel, password, existingSecret } = isObject(redis) ? redis : {}
  const [one, nodes, sentinels] = [standalone, cluster, sentinel].map((each) => (isObject(each) ? each : {}))
  const textsOf = (value: unknown) => [value ?? []].flat().map(String)
  const given = (value: unknown) => value !== undefined && value !== null && value !== ''
  return [
    ['session_store_type', 'redis'],
    ...(clientType === 'cluster'
      ? ([
          ['redis_use_cluster', 'true'],
          ['redis_cluster_connection_urls', textsOf(nodes?.['connectionUrls'])],
        ] as const)
      : clientType === 'sentinel'
        ? ([
            ['redis_use_sentinel', 'true'],
            ['redis_sentinel_master_name', String(sentinels?.['masterName'] ?? '')],
            ['redis_sentinel_connection_urls', textsOf(sentinels?.['connectionUrls'])],
          ] as const)
        : ([['redis_connection_url', String(one?.['connectionUrl'] ?? '')]] as const)),
    ...(given(password) || given(existingSecret) ? ([['redis_password', '${redis_password}']] as const) : []),
    ...(given(sentinels?.['password']) || given(sentinels?.['existingSecret'])
      ? ([['redis_sentinel_password', '${redis_sentinel_password}']] as const)
      : []),
  ]
}

/** The values of the chart that restrict access, and those that import does not know. */
function restrictionsIn(values: JsonObject, config: JsonObject): OptionPairs {
  const { authenticatedEmailsFile: addresses, htpasswdFile } = values
  const isOn = (section: unknown) => isObject(section) && section['enabled'] === true
  const known = ['authenticatedEmailsFile', 'htpasswdFile']
  const google = isObject(config['google']) ? config['google'] : {}
  const groups = [google['groups'] ?? []].flat().map(String)
  const isGiven = (value: unknown) => value !== null && value !== undefined && JSON.stringify(value).length > 2
  return [
    ...(isOn(addresses) ? ([['authenticated_emails_file', 'authenticatedEmailsFile of the chart']] as const) : []),
    ...(isOn(htpasswdFile) ? ([['htpasswd_file', 'htpasswdFile of the chart']] as const) : []),
    ...(groups.length > 0 ? ([['google_groups', groups]] as const) : []),
    ...Object.entries(values)
      .filter(([name, value]) => !otherValues.has(name) && !known.includes(name) && isGiven(value))
      .map(([name]) => [`${name} of the values`, 'given'] as const),
    ...Object.entries(config)
      .filter(([name, value]) => !otherConfig.has(name) && isGiven(value))
      .map(([name]) => [`config.${name} of the values`, 'given'] as const),
  ]
}
