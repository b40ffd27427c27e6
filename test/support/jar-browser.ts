import { cookieField, keepCookies, type KeptCookie, readSetCookie } from '../../src/http/cookie-jar.ts'
import { Browser, type Visit, type VisitOptions } from './browser.ts'

/**
 * A browser that keeps several cookies of one name, by host, domain and path (RFC 6265bis). Another
 * person can take it over.
 */
export class JarBrowser extends Browser {
  kept: readonly KeptCookie[] = []

  /** The same browser with another person, who is not signed in at the provider. */
  handOver(person: string): JarBrowser {
    const other = new JarBrowser(person)
    other.kept = this.kept.filter(({ name }) => !name.startsWith('demo_provider'))
    return other
  }

  /** `NAME PATH` of each cookie, without those of the gateway and the provider. */
  get places(): readonly string[] {
    return this.kept
      .filter(({ name }) => !/^(?:gatehouse|demo_provider)/.test(name))
      .map(({ name, path, domain, hostOnly }) => `${name} ${path}${hostOnly ? '' : ` ${domain}`}`)
      .toSorted()
  }

  override async send(url: string, { headers = {}, ...options }: VisitOptions = {}): Promise<Visit> {
    const { hostname, pathname } = new URL(url)
    const scope = { host: headers['host'] ?? hostname, path: pathname }
    const cookie = cookieField(this.kept, scope, Date.now())
    this.cookies.clear()
    const visit = await super.send(url, {
      ...options,
      headers: { ...(cookie !== undefined && { cookie }), ...headers },
    })
    const received = [visit.headers['set-cookie'] ?? []]
      .flat()
      .flatMap((text) => readSetCookie(text, scope, Date.now()) ?? [])
    this.kept = keepCookies(this.kept, received, Date.now())
    return visit
  }
}
