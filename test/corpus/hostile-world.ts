import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { Browser, type Visit } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { runReplica, secrets } from '../support/world.ts'
import { readForm, startHostileProvider, type Bends, type HostileProvider } from './hostile-provider.ts'

/** A request that reached the application. */
interface Seen {
  readonly headers: IncomingHttpHeaders
  readonly values: readonly string[]
}

/** A gateway between a hostile provider and an application. */
export interface HostileWorld {
  readonly provider: HostileProvider
  readonly url: string
  readonly seen: readonly Seen[]
  moveClock(ms: number): void
  /** A browser, with the cookies of another browser if one is given. */
  browser(like?: Browser): Browser
  /** Requests the protected page and follows no redirect. */
  visit(browser: Browser): Promise<Visit>
  isSignedIn(browser: Browser): Promise<boolean>
  /** Goes to the provider, and returns the URL of the callback. */
  start(browser: Browser, path?: string): Promise<string>
  /** Signs in, and returns the response of the callback. */
  signIn(browser: Browser, path?: string): Promise<Visit>
  signOut(browser: Browser): Promise<Visit>
  postLogoutToken(form: string, options?: { readonly type?: string; readonly cookie?: string }): Promise<Response>
}

export const application = '/app'
const marker = 'this is the application'
const own = (name: string) => `/.gatehouse/${name}`

export interface HostileWorldOptions {
  /** The faults of the provider at the start. */
  readonly bends?: Bends | undefined
  /** YAML below `provider:`. */
  readonly settings?: string | undefined
  /**
   * The gateway's address for browsers. With `localhost`, the pages of the provider belong to
   * another site.
   */
  readonly host?: 'localhost' | '127.0.0.1'
  /** Whether the gateway waits for the provider for 5 s, and not for 1 s. Default: true. */
  readonly isPatient?: boolean
}

export async function startHostileWorld(
  t: TestContext,
  { bends = {}, settings: providerSettings = '', host = '127.0.0.1', isPatient = true }: HostileWorldOptions = {},
): Promise<HostileWorld> {
  const port = await freePort()
  const url = `http://${host}:${port}`
  const provider = await startHostileProvider(t, { client_id: 'gw-client', client_secret: secrets.CLIENT_SECRET })
  provider.bends = bends
  if (bends.rotateKeys === 'weak') provider.published = ['a', 'ec', 'weak']
  const upstream = await startRecordingUpstream(t)
  let moved = 0
  const launch = () =>
    runReplica(t, configuration({ url, port, provider, upstream: upstream.url, providerSettings, isPatient }), {
      now: () => Date.now() + moved,
    })
  await launch()

  const visit = (browser: Browser) => browser.send(url + application)
  const start = (browser: Browser, path = application) => browser.until(url + path, own('callback'))
  return {
    provider,
    url,
    seen: upstream.seen,
    moveClock: (ms) => void (moved += ms),
    browser: (like) => {
      const browser = new Browser('alice')
      for (const [name, cookie] of like?.cookies ?? []) browser.cookies.set(name, cookie)
      return browser
    },
    visit,
    isSignedIn: async (browser) => {
      const { status, body } = await visit(browser)
      return status === 200 && body === marker
    },
    start,
    signIn: async (browser, path = application) => {
      const atProvider = await untilResponseOf(provider.issuer, browser, url + path)
      return comeBack(browser, atProvider)
    },
    signOut: (browser) => browser.send(url + own('sign-out'), { headers: { 'sec-fetch-site': 'same-origin' } }),
    postLogoutToken: (body, { type = 'application/x-www-form-urlencoded', cookie } = {}) =>
      fetch(url + own('backchannel-logout'), {
        method: 'POST',
        headers: { 'content-type': type, ...(cookie === undefined ? {} : { cookie }) },
        body,
      }),
  }
}

/** Follows redirects until this origin has responded. */
async function untilResponseOf(origin: string, browser: Browser, url: string): Promise<Visit> {
  let visit = await browser.send(url)
  for (let hops = 0; hops < 5 && new URL(visit.url).origin !== origin; hops += 1) {
    const { location } = visit.headers
    if (typeof location !== 'string') throw new Error(`never came to ${origin}: ${visit.status} at ${visit.url}`)
    visit = await browser.send(new URL(location, visit.url).href)
  }
  return visit
}

/**
 * The response of the callback, by redirect or by a form of the provider that the browser posts.
 */
async function comeBack(browser: Browser, { headers, body: page }: Visit): Promise<Visit> {
  const crossSite = { 'sec-fetch-site': 'cross-site' }
  if (typeof headers['location'] === 'string') return browser.send(headers['location'], { headers: crossSite })
  const { action, body } = readForm(page)
  // A browser adds no Lax cookie to a form that another site's page posts.
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const posted = await new Browser('alice').send(action, { method: 'POST', headers: { ...crossSite, ...type }, body })
  if (posted.status !== 303) return posted
  return browser.send(new URL(String(posted.headers['location']), action).href, { headers: crossSite })
}

async function startRecordingUpstream(t: TestContext): Promise<{ readonly url: string; readonly seen: Seen[] }> {
  const seen: Seen[] = []
  const server = createServer(({ headers, rawHeaders }, res) => {
    seen.push({ headers, values: rawHeaders.filter((_, index) => index % 2 === 1) })
    res.end(marker)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

interface Parts {
  readonly url: string
  readonly port: number
  readonly provider: HostileProvider
  readonly upstream: string
  readonly providerSettings: string
  readonly isPatient: boolean
}

function configuration({ url, port, provider, upstream, providerSettings, isPatient }: Parts): string {
  return `version: 1
listen: 127.0.0.1:${port}
external_url: ${url}
shutdown: { drain_timeout: 500ms }
provider:
  issuer: ${provider.issuer}
  client_id: ${provider.client_id}
  client_secret: { env: CLIENT_SECRET }
  timeout: ${isPatient ? '5s' : '1s'}
  ${providerSettings}
session:
  keys: [{ env: SESSION_KEY }]
  store: memory
upstreams:
  orders:
    url: ${upstream}
    headers:
      X-User-Sub: sub
      X-User-Name: name
      X-User-Email: email
      X-User-Groups: groups
`
}
