import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import type { TestContext } from 'node:test'
import { startDemoUpstream } from '../../examples/demo/upstream.ts'
import { issueCertificates, siteDomain } from './certificates.ts'
import { freePort } from './free-port.ts'
import { JarBrowser } from './jar-browser.ts'
import { startProvider, type TestProvider } from './provider.ts'
import { startRedis } from './redis.ts'
import { runReplica, type Replica, secrets } from './world.ts'

/** A gateway with TLS whose hosts share one session. People sign in at `sso.example.test`. */
export interface SiteWorld {
  readonly providers: readonly TestProvider[]
  readonly replicas: readonly Replica[]
  /** The URL of a path at a host of the domain: `url('wiki', '/echo')`. */
  url(host: string, path: string, replica?: number): string
  browser(person?: string): JarBrowser
  /**
   * The first provider sends a Logout Token about a person. Resolves to the status of the response.
   */
  logOut(sub: string): Promise<number>
  /** Connects an open page to its event stream. Resolves to the rest of the stream. */
  openPage(host: string, cookie: string): Promise<{ readonly rest: Promise<string> }>
  /** Starts the first gateway again with other YAML below `session:`, at the same port. */
  restart(session: string): Promise<void>
}

export interface SiteOptions {
  /** Their names. With one, the setting is `provider`. */
  readonly providers?: readonly string[]
  readonly replicas?: number
  /** Default: in memory for one replica, otherwise Redis. */
  readonly store?: 'redis'
  /** The upstreams, in YAML indented by two. */
  readonly upstreams?: (upstream: URL, port: number) => string
  /** YAML below `session:`, on one line. */
  readonly session?: string
  readonly settings?: string
}

const cookieOfDomain = `cookie: { domain: ${siteDomain} }`

/** A wiki with a host of its own, and an application for each other host. */
const wikiAndApps = (upstream: URL, port: number): string => `
  wiki:
    external_url: https://wiki.${siteDomain}:${port}
    url: ${upstream.origin}
    headers: { X-Remote-User: sub }
    rules: [{ path: /admin/*, require: { claim: sub, equals: somebody } }]
    logout: { paths: [/logout] }
  apps:
    external_url: https://*.apps.${siteDomain}:${port}
    url: ${upstream.origin}
    headers: { X-Remote-User: sub }`

export async function startSite(t: TestContext, options: SiteOptions = {}): Promise<SiteWorld> {
  const { providers: names = ['provider'], replicas: count = 1, upstreams = wikiAndApps } = options
  const { ca, cert, key } = issueCertificates().server
  const ports = await Promise.all(Array.from({ length: count }, () => freePort()))
  const [port = 0] = ports
  const prefixOf = (name: string) => (names.length === 1 ? '/.gatehouse/' : `/.gatehouse/${name}/`)
  const at = (name: string, endpoint: string) =>
    ports.map((each) => `https://sso.${siteDomain}:${each}${prefixOf(name)}${endpoint}`)
  const providers = await Promise.all(
    names.map((name) =>
      startProvider(t, {
        client_id: 'orders',
        client_secret: secrets.CLIENT_SECRET,
        redirect_uris: at(name, 'callback'),
        post_logout_redirect_uris: at(name, 'signed-out'),
        backchannel_logout_uri: String(at(name, 'backchannel-logout')[0]),
      }),
    ),
  )
  const demo = await startDemoUpstream({ host: '127.0.0.1', port: 0 })
  t.after(() => demo.close())
  const redis = count > 1 || options.store === 'redis' ? await startRedis(t) : undefined
  const settingOf = (index: number) =>
    `{ issuer: ${providers[index]?.issuer ?? ''}, client_id: orders, client_secret: { env: CLIENT_SECRET } }`
  const yaml = (own: number, session: string) => `version: 1
listen: { address: "127.0.0.1:${own}", tls: { cert_file: ${cert}, key_file: ${key} } }
external_url: https://sso.${siteDomain}:${own}
shutdown: { drain_timeout: 500ms }
${options.settings ?? ''}
${names.length === 1 ? `provider: ${settingOf(0)}` : `providers:\n${names.map((name, index) => `  ${name}: ${settingOf(index)}`).join('\n')}`}
session:
  keys: [{ env: SESSION_KEY }]
  store: ${redis === undefined ? 'memory' : `{ redis: { url: "${redis.url}" } }`}
  ${session}
upstreams:${upstreams(demo.url, own)}
`
  const start = (own: number, session: string) => runReplica(t, yaml(own, session), { now: () => Date.now() })
  const replicas: Replica[] = []
  for (const own of ports) replicas.push(await start(own, options.session ?? cookieOfDomain))
  const browser = (person = 'jane') => new JarBrowser(person, readFileSync(ca, 'utf8'))
  return {
    providers,
    replicas,
    url: (host, path, replica = 0) => `https://${host}.${siteDomain}:${ports[replica] ?? 0}${path}`,
    browser,
    logOut: async (sub) => {
      const logout_token = String(await providers[0]?.logoutToken({ sub }))
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const body = new URLSearchParams({ logout_token }).toString()
      const url = String(at(String(names[0]), 'backchannel-logout')[0])
      return (await browser().send(url, { method: 'POST', headers, body })).status
    },
    openPage: async (host, cookie) => {
      const { hostname } = new URL(`https://${host}.${siteDomain}`)
      const headers = { host: hostname, cookie, 'sec-fetch-site': 'same-origin' }
      const options = { host: '127.0.0.1', port, servername: hostname, path: '/.gatehouse/events', headers }
      const req = request({ ...options, ca: readFileSync(ca) }).end()
      const [res] = (await once(req, 'response')) as [IncomingMessage]
      await once(res, 'readable')
      return { rest: res.toArray().then((chunks) => Buffer.concat(chunks as Buffer[]).toString()) }
    },
    restart: async (session) => {
      await replicas[0]?.stop()
      replicas[0] = await start(port, session)
    },
  }
}
