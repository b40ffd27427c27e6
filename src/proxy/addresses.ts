// Translates between the addresses that clients use and those that an upstream uses.
import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { UpstreamSetCookieSettings } from '../config/settings.ts'
import { AddressText } from '../http/address-text.ts'
import { readAttribute } from '../http/cookie-jar.ts'
import { canonicalTarget } from '../http/request-target.ts'

type AddressConfig = Pick<
  UpstreamConfig,
  'hostHeader' | 'originHeader' | 'url' | 'path' | 'stripPath' | 'alsoKnownAs' | 'setCookie' | 'externalUrl' | 'hosts'
>

/**
 * Translates the addresses of one upstream, in requests and in responses. One whose `external_url`
 * has a wildcard has addresses for each of its hosts.
 */
export class Addresses {
  /** The path of `url`, without the slash at its end: `/app`, or empty. */
  readonly #base: string
  /** The path that is removed from requests, without the slash at its end: `/wiki`, or empty. */
  readonly #stripped: string
  /** How many segments are removed from the path of a request. */
  readonly #depth: number
  readonly #mapsPaths: boolean
  readonly #reservedPrefix: string
  /** The scheme of a reference that begins with `//`. */
  readonly #scheme: string
  /** The origins of the upstream itself, which clients may be unable to reach. */
  readonly #own: ReadonlySet<string>
  /** The origins of the gateway for this upstream, and the ones that clients should use. */
  readonly #public: ReadonlyMap<string, string>
  readonly #setCookie: UpstreamSetCookieSettings
  readonly #changesCookies: boolean
  readonly #config: AddressConfig
  readonly #changesRequests: boolean
  readonly #ownHosts: readonly string[]
  readonly #publicHosts: readonly string[]

  constructor(config: AddressConfig, reservedPrefix: string) {
    const { url, path, stripPath, alsoKnownAs, setCookie } = config
    this.#base = url.pathname.replace(/\/$/, '')
    this.#stripped = stripPath ? path.replace(/\/$/, '') : ''
    this.#depth = this.#stripped.split('/').length - 1
    this.#mapsPaths = this.#base !== '' || this.#depth > 0
    this.#reservedPrefix = reservedPrefix.replace(/\/$/, '')
    this.#scheme = url.protocol
    this.#own = new Set([url.origin, ...alsoKnownAs])
    this.#public = publicOrigins(config)
    const { domain, path: cookiePath, secure, sameSite } = setCookie
    this.#setCookie = setCookie
    this.#config = config
    this.#changesRequests =
      path !== '/' || this.#mapsPaths || config.hostHeader === 'upstream' || config.originHeader === 'upstream'
    this.#changesCookies =
      this.#mapsPaths || secure || [domain, cookiePath, sameSite, alsoKnownAs[0]].some((each) => each !== undefined)
    this.#ownHosts = [...this.#own].map((origin) => new URL(origin).hostname)
    this.#publicHosts = [...this.#public.keys()].map((origin) => new URL(origin).hostname)
  }

  /**
   * The path and query at the upstream for a canonical path of the gateway. A canonical path has
   * neither a dot segment nor an empty segment before its end, so the result stays below the path
   * of `url`.
   */
  path(path: string, query: string): string {
    return this.#base + withoutSegments(path, this.#depth) + query
  }

  /** Finds the addresses that are to be replaced in content. */
  inContent(): AddressText {
    const own = [...this.#own].map((from) => ({
      from,
      to: this.#config.externalUrl.origin,
      base: this.#base,
      publicBase: this.#stripped,
    }))
    const twins = [...this.#public].filter(([from, to]) => from !== to)
    return new AddressText(
      [...own, ...twins.map(([from, to]) => ({ from, to, base: '', publicBase: '' }))],
      this.#scheme,
    )
  }

  /**
   * The fields of a request, as the upstream understands them: names and values in turn.
   * @param host the host that the client requested
   */
  request(fields: string[], host: string): string[] {
    if (!this.#changesRequests) return fields
    const translated: string[] = []
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const [name = '', value = ''] = [fields[at], fields[at + 1]]
      const kept = this.#requestField(name.toLowerCase(), value, host)
      if (kept !== undefined) translated.push(name, kept)
    }
    return translated
  }

  #requestField(name: string, value: string, host: string): string | undefined {
    const isInitiator = name === 'origin' || name === 'referer'
    if (name !== 'destination' && !(isInitiator && this.#config.originHeader === 'upstream')) return value
    const { externalUrl, url: own, hostHeader } = this.#config
    // Only Destination may be a path. "Origin: null" is another origin.
    const base = isInitiator ? undefined : externalUrl.href
    if (!URL.canParse(value, base)) return value
    const url = new URL(value, base)
    const isRequested = url.origin === `${externalUrl.protocol}//${host.toLowerCase()}`
    // The http twin of a public origin is another origin: anybody on the network can write its
    // pages.
    const published = this.#public.get(url.origin)
    if (!isRequested && (isInitiator ? published !== url.origin : published === undefined)) return value
    if (name === 'origin') return own.origin
    const target = this.#servedTarget(url.pathname + url.search)
    const path = target && this.path(target.path, target.query)
    if (name === 'referer') return own.origin + (path ?? '/')
    const origin = hostHeader === 'upstream' ? own.origin : url.origin
    // A path outside of the upstream must not become one inside. Without the field, the application
    // rejects the request (RFC 4918 §9.8, §9.9). An application with WebDAV writes its own paths
    // into the content of responses (RFC 4918 §8.3). Behind `strip_path`, it has to write public
    // paths, so it expects them in Destination too.
    return target && origin + (this.#stripped === '' ? path : target.path + target.query)
  }

  /** `undefined` for a path that this upstream does not serve. */
  #servedTarget(target: string): { readonly path: string; readonly query: string } | undefined {
    try {
      const served = canonicalTarget(target)
      return isAtOrBelow(served.path, this.#config.path.replace(/\/$/, '')) ? served : undefined
    } catch {
      return undefined
    }
  }

  /**
   * The value of a field of a response, as clients can use it. `name` is in lower case.
   * @returns the same value for a field without addresses
   */
  response(name: string, value: string): string {
    switch (name) {
      case 'location':
      case 'content-location':
        return this.#publicReference(value)
      case 'refresh':
        return value.replace(
          refreshUrl,
          (_, before: string, reference: string) => before + this.#publicReference(reference),
        )
      case 'link':
        return value.replaceAll(linkTarget, (_, reference: string) => `<${this.#publicReference(reference)}>`)
      case 'set-cookie':
        return this.#changesCookies ? this.#publicCookie(value) : value
      default:
        return value
    }
  }

  /** A `Set-Cookie` value with other attributes. Name and value stay unchanged. */
  #publicCookie(value: string): string {
    const [pair = '', ...attributes] = value.split(';')
    const { domain, path, secure, sameSite } = this.#setCookie
    // Browsers accept this prefix only with Path=/ and without Domain (RFC 6265bis §4.1.3.2).
    const isOfHost = /^[=\s]*__Host-/i.test(pair)
    const kept = attributes.flatMap((attribute) => {
      const { name, value: text } = readAttribute(attribute)
      switch (name) {
        case 'domain':
          return domain === 'remove' || this.#isOwnDomain(text) ? [] : [attribute]
        case 'path':
          if (isOfHost) return [attribute]
          return path === undefined && this.#mapsPaths
            ? [` Path=${this.#publicCookiePath(text)}`]
            : path === undefined
              ? [attribute]
              : []
        case 'secure':
          return secure || sameSite === 'none' ? [] : [attribute]
        case 'samesite':
          return sameSite === undefined ? [attribute] : []
        default:
          return [attribute]
      }
    })
    if (path !== undefined && !isOfHost) kept.push(` Path=${path}`)
    if (secure || sameSite === 'none') kept.push(' Secure')
    if (sameSite !== undefined) kept.push(` SameSite=${sameSiteText[sameSite]}`)
    return [pair, ...kept].join(';')
  }

  /**
   * A `Set-Cookie` value for a cookie that the gateway keeps: without a `Domain` that is an address
   * of the upstream itself, and without any if the configuration removes it.
   */
  ownCookie(value: string): string {
    const [pair = '', ...attributes] = value.split(';')
    const isRemoved = (text: string) => this.#setCookie.domain === 'remove' || this.#isOwnDomain(text)
    const kept = attributes.filter((attribute) => {
      const { name, value: text } = readAttribute(attribute)
      return name !== 'domain' || !isRemoved(text)
    })
    return [pair, ...kept].join(';')
  }

  /** Whether browsers would reject a `Domain` because it is one of the upstream's own addresses. */
  #isOwnDomain(text: string): boolean {
    const domain = text.replace(/^\./, '').toLowerCase()
    const isWithin = (host: string) => host === domain || host.endsWith(`.${domain}`)
    return this.#ownHosts.some(isWithin) && !this.#publicHosts.some(isWithin)
  }

  #publicCookiePath(path: string): string {
    if (!path.startsWith('/') || (this.#stripped !== '' && isAtOrBelow(path, this.#stripped))) return path
    // The cookie is for the whole application, and perhaps for others at its host.
    if (`${this.#base}/`.startsWith(path.endsWith('/') ? path : `${path}/`))
      return this.#stripped === '' ? '/' : this.#stripped
    return isAtOrBelow(path, this.#base) ? this.#stripped + path.slice(this.#base.length) : path
  }

  #publicReference(reference: string): string {
    const [authority, scheme] = /^(https?:)?\/\/[^/?#\\]*/i.exec(reference) ?? []
    if (authority === undefined) return this.#mapsPaths ? this.#publicPath(reference) : reference
    const origin = originOf(scheme === undefined ? this.#scheme + authority : authority)
    if (origin === undefined) return reference
    const place = reference.slice(authority.length)
    if (this.#own.has(origin)) return this.#fromUpstream(place) ?? reference
    const published = this.#public.get(origin)
    if (published === undefined) return reference
    const path = this.#mapsPaths ? this.#publicPath(place) : place
    return origin === published && path === place ? reference : published + path
  }

  /**
   * The public form of an absolute path. An application that knows its public address writes the
   * public path itself, and may link to an endpoint of the gateway. These paths stay unchanged.
   */
  #publicPath(path: string): string {
    // Browsers take `/\host` and `/<tab>/host` for another host.
    if (!path.startsWith('/') || /^\/[/\\\t]/.test(path)) return path
    if (this.#stripped !== '' && isAtOrBelow(path, this.#stripped)) return path
    if (isAtOrBelow(path, this.#reservedPrefix)) return path
    return this.#fromUpstream(path) ?? path
  }

  /** The public path for a path of the upstream; `undefined` outside of the path of `url`. */
  #fromUpstream(place: string): string | undefined {
    if (!isAtOrBelow(place, this.#base)) return undefined
    // `//host` would refer to another host. Browsers treat `/\` like `//`, and remove tabs.
    return `${this.#stripped}/${place.slice(this.#base.length).replace(/^[/\\\t]+/, '')}`
  }
}

const sameSiteText = { strict: 'Strict', lax: 'Lax', none: 'None' } as const

/** The URL of a `Refresh` field: `5; url=/next`. The URL may be quoted. */
const refreshUrl = /^(\s*[\d.]+[\s;,]+(?:url[\s=]+)?["']?)([^"']+)/i

/** The target of a link (RFC 8288 §3). */
const linkTarget = /<([^<>]*)>/g

/** Without the first segments of a path. `/` when there are no others. */
function withoutSegments(path: string, depth: number): string {
  let at = 0
  for (let removed = 0; removed < depth; removed += 1) {
    at = path.indexOf('/', at + 1)
    if (at < 0) return '/'
  }
  return at === 0 ? path : path.slice(at)
}

function isAtOrBelow(path: string, folder: string): boolean {
  return path.startsWith(folder) && /^(?:[/?#]|$)/.test(path.slice(folder.length))
}

/** `undefined` for an invalid URL, and for one with a user name or password. */
function originOf(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined
  const { origin, username, password } = new URL(url)
  return username === '' && password === '' ? origin : undefined
}

/** The public origins, by each origin that an upstream may write. Many write `http:` behind TLS. */
function publicOrigins({ externalUrl, hosts }: AddressConfig): ReadonlyMap<string, string> {
  const { protocol, port, host: externalHost } = externalUrl
  const origins = new Map<string, string>()
  for (const host of [externalHost, ...hosts.map((name) => (port === '' ? name : `${name}:${port}`))]) {
    const published = `${protocol}//${host}`
    origins.set(published, published)
    if (protocol !== 'https:') continue
    origins.set(`http://${host}`, published)
    // An application that does not know the port writes the host alone.
    origins.set(`http://${host.replace(/:\d+$/, '')}`, published)
  }
  return origins
}
