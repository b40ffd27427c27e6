import { parseHost, parseHttpUrl, parseLooseSubnet, parseSubnet } from '../addresses.ts'
import type { Environment, Setting } from '../document/report.ts'
import type { EgressProxyConfig, NoProxy } from '../model/provider.ts'
import type { EgressProxySettings } from '../settings.ts'
import { parseEach } from './build-context.ts'
import { readAuthorities } from './certificates.ts'
import { readSecret } from './secrets.ts'

/**
 * The proxy of `egress_proxy`, or that of the environment variables.
 * @returns `undefined` when neither names one
 */
export function buildEgressProxy(
  settings: EgressProxySettings | undefined,
  at: Setting,
): EgressProxyConfig | undefined {
  const proxy =
    settings?.url === undefined
      ? proxyOfEnvironment(at)
      : {
          url: at.below('url').parse(settings.url, proxyUrl),
          from: at.below('url').path,
          authorization: undefined,
        }
  const password = settings?.password && readSecret(settings.password, at.below('password'))
  const noProxy =
    settings?.noProxy === undefined
      ? noProxyOfEnvironment(at.report.env)
      : parseEach(settings.noProxy, at.below('no_proxy'), (text) => parseNoProxy(text))
  const ca = readAuthorities(settings?.caFile, at.below('ca_file'))
  if (proxy?.url === undefined) {
    if (proxy === undefined && (settings?.username !== undefined || settings?.caFile !== undefined))
      at.below('url').missing(
        'is missing, and the environment names no proxy',
        'for example url: http://proxy.example.com:3128',
      )
    return undefined
  }
  return {
    url: proxy.url,
    from: proxy.from,
    authorization:
      settings?.username !== undefined && password !== undefined
        ? basic(settings.username, password)
        : proxy.authorization,
    noProxy,
    ca,
  }
}

/** The first variable that is set counts. Most tools accept lower case too. */
const proxyVariables = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY']

interface FoundProxy {
  readonly url: URL | undefined
  readonly from: string
  readonly authorization: string | undefined
}

/** The value may contain a password, so that no diagnostic repeats it. */
function proxyOfEnvironment(at: Setting): FoundProxy | undefined {
  const { env } = at.report
  const name = proxyVariables.find((variable) => (env[variable] ?? '') !== '')
  if (name === undefined) return undefined
  const text = env[name] ?? ''
  const from = `the environment variable ${name}`
  const parsed = withScheme(text)
  if (parsed === undefined) {
    at.error(
      `${from} is not the http or https URL of a proxy`,
      "correct it, or write egress_proxy: { url: … }, or egress_proxy: { no_proxy: ['*'] } for no proxy",
    )
    return { url: undefined, from, authorization: undefined }
  }
  const { username, password } = parsed
  const authorization = username === '' ? undefined : basic(decoded(username), decoded(password))
  return { url: new URL(parsed.origin), from, authorization }
}

/** Other tools accept a proxy without a scheme, as in `proxy.example.com:3128`. */
function withScheme(text: string): URL | undefined {
  const whole = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`
  const url = URL.canParse(whole) ? new URL(whole) : undefined
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** RFC 7617 §2 */
function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

function proxyUrl(text: string): URL {
  return new URL(parseHttpUrl(text, 'http://proxy.example.com:3128').origin)
}

/** Entries that no tool understands have no effect, as in other programs. */
function noProxyOfEnvironment(env: Environment): NoProxy[] {
  const text = env['no_proxy'] ?? env['NO_PROXY'] ?? ''
  return text.split(/[\s,]+/).flatMap((entry) => {
    try {
      return entry === '' ? [] : [parseNoProxy(entry, parseLooseSubnet)]
    } catch {
      return []
    }
  })
}

/** @throws {SyntaxError} when the text is no host, address, range or `*` */
function parseNoProxy(text: string, parse = parseSubnet): NoProxy {
  if (text === '*') return { kind: 'all' }
  const [, named = text, digits] = /^([^:]+|\[[^\]]+\]):(\d{1,5})$/.exec(text) ?? []
  const port = digits === undefined ? undefined : Number(digits)
  const address = named.replace(/^\[(.*)\]$/, '$1')
  if (/^[\d.]+(?:\/\d+)?$/.test(address) || address.includes(':'))
    return { kind: 'subnet', subnet: parse(address), port }
  return { kind: 'host', host: parseHost(named.replace(/^\*?\./, '')), port }
}
