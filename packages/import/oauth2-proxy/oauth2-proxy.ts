import {
  networkText,
  parseAddress,
  parseHttpUrl,
  parseLooseSubnet,
  parseSubnet,
  placeholder,
} from '../../../src/entries/import.ts'
import type { Options } from '../common/flat-toml.ts'
import { type Translated, translatedFile } from '../common/translated-file.ts'
import { type Translation, translationOf } from '../common/translation.ts'
import { outcomesOfOauth2Proxy } from './oauth2-proxy-outcomes.ts'
import { translateProvider } from './oauth2-proxy-provider.ts'
import { translateSession } from './oauth2-proxy-session.ts'
import { translateUpstreams } from './oauth2-proxy-upstreams.ts'
import { withoutTranslation } from './oauth2-proxy-without.ts'

/**
 * Translates options of oauth2-proxy and notes the differences. When rules cannot express a
 * restriction of oauth2-proxy, the configuration denies all people until an operator decides.
 */
export function translate(options: Options, externalUrl: string | undefined): Translated {
  const from = translationOf(
    options,
    (option) => secrets.has(option),
    (option) => asked.has(option),
  )
  const addresses = browsers(from, externalUrl)
  const config = {
    version: 1,
    listen: listen(from),
    ...addresses,
    trusted_proxies: trustedProxies(from),
    admin: admin(from),
    provider: translateProvider(from),
    session: translateSession(from, addresses.external_url),
    log: from.isOn('request_logging', true) ? undefined : { access: false },
    // This comes last: an unknown option that nothing above has read makes the rules deny all
    // people.
    upstreams: translateUpstreams(from),
  }
  for (const option of from.rest) {
    const known = withoutTranslation.get(option)
    if (known !== undefined) from[from.isOff(option) ? 'unneeded' : known.level](option, known.why)
  }
  return translatedFile(config, outcomesOfOauth2Proxy(from), 'oauth2-proxy', from)
}

/** The options whose value is a secret, which no file contains. */
const secrets: ReadonlySet<string> = new Set([
  'basic_auth_password',
  'client_secret',
  'cookie_secret',
  'redis_password',
  'redis_sentinel_password',
])

/** Without these, the file has a placeholder, and people cannot sign in. */
const asked: ReadonlySet<string> = new Set(['client_id', 'redirect_url', 'redis_connection_url'])

function listen(from: Translation): unknown {
  const [cert_file, key_file] = [from.text('tls_cert_file'), from.text('tls_key_file')]
  const [http, https] = [from.text('http_address'), from.text('https_address')]
  if (cert_file === undefined || key_file === undefined)
    return address(http ?? '127.0.0.1:4180', 'http_address', from) ?? '127.0.0.1:4180'
  if (http !== undefined)
    from.changed('http_address', 'the gateway has one address to listen on; this file has the https address')
  const given = address(https ?? ':443', 'https_address', from)
  return { address: given ?? '0.0.0.0:443', tls: { cert_file, key_file } }
}

/** A host and a port; for other forms, adds a note and returns `undefined`. */
function address(given: string, option: string, from: Translation): string | undefined {
  const text = given.replace(/^https?:\/\//i, '').replace(/^:/, '0.0.0.0:')
  try {
    parseAddress(text, '0.0.0.0')
    return text
  } catch {
    from.lost(option, 'the gateway listens only on a host and a port')
    return undefined
  }
}

function browsers(
  from: Translation,
  given: string | undefined,
): { readonly external_url: string; readonly reserved_prefix: string } {
  const redirect = httpUrl(from.text('redirect_url') ?? '')
  const prefix = `${(from.text('proxy_prefix') ?? '/oauth2').replace(/\/+$/, '')}/`
  const isUsable = /^(\/[\w.-]+)+\/$/.test(prefix)
  const reserved_prefix = isUsable ? prefix : '/.gatehouse/'
  const external_url = given ?? redirect?.origin ?? `https://${placeholder}.example.com`
  if (given === undefined && redirect === undefined)
    from.decide('redirect_url', 'write the URL at which browsers reach the gateway as external_url (--url sets it)')
  from.changed(
    'proxy_prefix',
    redirect?.href === `${external_url}${reserved_prefix}callback`
      ? `the redirect URI stays the same; links to ${prefix}sign_in and ${prefix}sign_out become ${reserved_prefix}sign-in and ${reserved_prefix}sign-out`
      : `the redirect URI is ${external_url}${reserved_prefix}callback: register it at the provider; links to ${prefix}sign_in and ${prefix}sign_out become ${reserved_prefix}sign-in and ${reserved_prefix}sign-out`,
  )
  if (!from.isOn('cookie_secure', true))
    from.changed('cookie_secure', 'the cookie is Secure exactly when external_url is https')
  return { external_url, reserved_prefix }
}

function httpUrl(text: string): URL | undefined {
  try {
    return parseHttpUrl(text, '')
  } catch {
    return undefined
  }
}

function trustedProxies(from: Translation): readonly string[] | undefined {
  const isBehind = from.isOn('reverse_proxy')
  const subnets = from.list('trusted_proxy_ips').flatMap(networkOf)
  if (isBehind && subnets.length === 0)
    from.decide(
      'reverse_proxy',
      'write the addresses of the proxies in front of the gateway in trusted_proxies; until then the gateway ignores X-Forwarded-*, and applications receive http as the scheme',
    )
  return isBehind && subnets.length > 0 ? subnets : undefined
}

/** oauth2-proxy takes `10.1.2.3/8` for the network. */
function networkOf(text: string): readonly string[] {
  try {
    return [text.includes('/') ? networkText(parseLooseSubnet(text)) : parseSubnet(text).address]
  } catch {
    return []
  }
}

function admin(from: Translation): object | undefined {
  const given = from.text('metrics_address')
  const listenAt = given === undefined ? undefined : address(given, 'metrics_address', from)
  return listenAt === undefined ? undefined : { listen: listenAt }
}
