import type { LookupFunction } from 'node:net'
import { Agent, request } from 'undici'
import { until } from './until.ts'

/** The header fields that a browser sends with a navigation. */
export const navigation = {
  accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'none',
}

export interface Visit {
  readonly url: string
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

export interface VisitOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

interface Cookie {
  readonly value: string
  readonly path: string
}

/** Every name leads to this machine, as a name server of the tests would say. */
const toThisMachine: LookupFunction = (_host, { all }, done) =>
  all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)

/**
 * Acts like a person's browser at the level of HTTP: it keeps cookies by host and path (not by
 * port, RFC 6265 §8.5) and follows redirects.
 */
export class Browser {
  readonly cookies = new Map<string, Cookie>()
  /** Absent: the requests have no `User-Agent`. */
  userAgent: string | undefined
  readonly #person: string
  readonly #agent: Agent | undefined

  /** `ca` is the certificate authority (PEM) that it trusts. */
  constructor(person: string, ca?: string) {
    this.#person = person
    // Connections that stay open would keep the process of the test.
    this.#agent = ca === undefined ? undefined : new Agent({ connect: { ca, lookup: toThisMachine }, pipelining: 0 })
  }

  /** Sends one request and follows no redirect. */
  async send(url: string, { method = 'GET', headers = {}, body }: VisitOptions = {}): Promise<Visit> {
    const { pathname } = new URL(url)
    const cookie = [...this.cookies]
      .filter(([, { path }]) => pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`)
    const response = await request(url, {
      method: method as 'GET',
      headers: {
        ...navigation,
        ...(this.userAgent === undefined ? {} : { 'user-agent': this.userAgent }),
        ...(cookie.length > 0 ? { cookie: cookie.join('; ') } : {}),
        ...headers,
      },
      body: body ?? null,
      ...(this.#agent === undefined ? {} : { dispatcher: this.#agent }),
    })
    for (const line of [response.headers['set-cookie'] ?? []].flat()) this.#keep(line)
    return { url, status: response.statusCode, headers: response.headers, body: await response.body.text() }
  }

  /** Loads a page: follows redirects, and completes the sign-in form when the provider shows it. */
  async get(url: string, options: VisitOptions = {}): Promise<Visit> {
    let visit = await this.send(url, options)
    let site = options.headers?.['sec-fetch-site'] ?? 'none'
    for (let hops = 0; hops < 20; hops += 1) {
      const { location } = visit.headers
      if (typeof location === 'string') {
        const next = new URL(location, visit.url)
        // After a chain of redirects has crossed sites, all further requests are cross-site (Fetch
        // Metadata §2.4).
        if (next.origin !== new URL(visit.url).origin) site = 'cross-site'
        visit = await this.send(next.href, { headers: { 'sec-fetch-site': site } })
      } else if (/\/sign-in\/[\w-]+$/.test(new URL(visit.url).pathname) && visit.status === 200)
        visit = await this.#choose(visit.url)
      else return visit
    }
    throw new Error(`redirects without an end at ${visit.url}`)
  }

  /**
   * Loads a page after a logout, and tries again until it gets it. A sign-in that begins within one
   * round trip to Redis after a logout is rejected, because the gateway cannot tell which was
   * first.
   */
  signInAgain(url: string): Promise<void> {
    return until('signed in again', async () => (await this.get(url)).status === 200)
  }

  /** Like `get`, but stops before a request to `path` and returns its URL. */
  async until(url: string, path: string): Promise<string> {
    let visit = await this.send(url)
    for (let hops = 0; hops < 20; hops += 1) {
      const { location } = visit.headers
      const next = typeof location === 'string' ? new URL(location, visit.url) : undefined
      if (next?.pathname === path) return next.href
      visit = next === undefined ? await this.#choose(visit.url) : await this.send(next.href)
    }
    throw new Error(`never came to ${path}; the last page was ${visit.url}`)
  }

  /** Sends the request of a script on a page. */
  fetch(url: string, options: VisitOptions = {}): Promise<Visit> {
    const headers = {
      accept: '*/*',
      'sec-fetch-mode': 'cors',
      'sec-fetch-dest': 'empty',
      'sec-fetch-site': 'same-origin',
      ...options.headers,
    }
    return this.send(url, { ...options, headers })
  }

  /** The `Cookie` header for a request to the gateway. */
  get cookieHeader(): string {
    return [...this.cookies]
      .filter(([, { path }]) => path === '/')
      .map(([name, { value }]) => `${name}=${value}`)
      .join('; ')
  }

  #choose(url: string): Promise<Visit> {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    return this.send(url, { method: 'POST', headers, body: new URLSearchParams({ person: this.#person }).toString() })
  }

  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    const path = /; *path=([^;]+)/i.exec(line)?.[1] ?? '/'
    if (value === '' || /max-age=0/i.test(line)) this.cookies.delete(name)
    else this.cookies.set(name, { value, path })
  }
}
