import { parseHttpUrl, parseLooseSubnet } from '../addresses.ts'
import { type NoProxy, parseNoProxy } from '../document/address-formats.ts'
import type { Environment, Setting } from '../document/report.ts'
import type { EgressProxyConfig } from '../model/provider.ts'
import type { EgressProxySettings } from '../settings.ts'

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
  const { username, password, ca, noProxy = noProxyOfEnvironment(at.report.env) } = settings ?? {}
  if (proxy?.url === undefined) {
    if (proxy === undefined && (username !== undefined || at.below('ca_file').isSet))
      at.below('url').missing(
        'is missing, and the environment names no proxy',
        'for example url: http://proxy.example.com:3128',
      )
    return undefined
  }
  return {
    url: proxy.url,
    from: proxy.from,
    authorization: username !== undefined && password !== undefined ? basic(username, password) : proxy.authorization,
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
