import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { startDemoUpstream } from '../../examples/demo/upstream.ts'
import type { Browser, Visit } from './browser.ts'
import { freePort } from './free-port.ts'
import { replacePauses } from './pauses.ts'
import { startProvider, type TestProvider, type TestProviderOptions } from './provider.ts'
import { startRedis } from './redis.ts'
import { runReplica, type Replica, secrets } from './world.ts'

/** A gateway with two providers: staff sign in at one, partners at the other. */
export interface TwoProviders {
  readonly url: string
  readonly staff: TestProvider
  readonly partners: TestProvider
  readonly replicas: readonly Replica[]
  moveClock(ms: number): void
}

/** Starts a gateway with two providers, and the providers. */
export async function twoProviders(
  t: TestContext,
  {
    upstreams,
    session = '',
    replicas = 1,
    partnersStartDown = false,
    application,
    providerSettings = '',
    provider,
  }: {
    upstreams: (upstream: URL) => string
    session?: string
    replicas?: number
    partnersStartDown?: boolean
    application?: URL
    /** YAML of both providers, on one line. */
    providerSettings?: string
    /** Options of both providers. */
    provider?: Pick<TestProviderOptions, 'adjust'>
  },
): Promise<TwoProviders> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const start = (name: string, startDown = false) =>
    startProvider(t, {
      ...provider,
      startDown,
      client_id: 'orders',
      client_secret: secrets.CLIENT_SECRET,
      redirect_uris: [`${url}/.gatehouse/${name}/callback`],
      post_logout_redirect_uris: [`${url}/.gatehouse/${name}/signed-out`],
      backchannel_logout_uri: `${url}/.gatehouse/${name}/backchannel-logout`,
    })
  if (partnersStartDown === true) replacePauses(t, { waitForDependenciesMs: 300 })
  const [staff, partners] = [await start('staff'), await start('partners', partnersStartDown)]
  const demo = await startDemoUpstream({ host: '127.0.0.1', port: 0 })
  t.after(() => demo.close())
  const redis = replicas > 1 ? await startRedis(t) : undefined
  let moved = 0
  const clock = { now: () => Date.now() + moved }
  const yaml = (listen: number) => `version: 1
listen: 127.0.0.1:${listen}
external_url: ${url}
shutdown: { drain_timeout: 500ms }
providers:
  staff:
    title: Staff
    issuer: ${staff.issuer}
    client_id: orders
    client_secret: { env: CLIENT_SECRET }
    ${providerSettings}
  partners:
    title: Partners & guests
    issuer: ${partners.issuer}
    client_id: orders
    client_secret: { env: CLIENT_SECRET }
    claims: { mail: email }
    ${providerSettings}
session:
  keys: [{ env: SESSION_KEY }]
  store: ${redis === undefined ? 'memory' : `{ redis: { url: "${redis.url}" } }`}
  ${session}
upstreams:
${upstreams(application ?? demo.url)}`
  const running: Replica[] = []
  for (let n = 0; n < replicas; n += 1) running.push(await runReplica(t, yaml(n === 0 ? port : 0), clock))
  return { url, staff, partners, replicas: running, moveClock: (ms) => void (moved += ms) }
}

const headers = 'headers: { X-Remote-User: sub, X-Issuer: iss, X-Mail: mail }'
/** An application of each provider. */
export const separate = (upstream: URL) => `  staff:
    url: ${upstream.origin}
    path: /staff
    strip_path: true
    providers: [staff]
    ${headers}
  partners:
    url: ${upstream.origin}
    path: /partners
    strip_path: true
    logout: { paths: [/partners/logout] }
    providers: [partners]
    ${headers}
`
/** One application, whose people sign in at either provider. */
export const shared = (upstream: URL) => `  orders:
    url: ${upstream.origin}
    ${headers}
`

/** The headers that the application got. */
export function headersOf({ body }: Visit): ReadonlyMap<string, string> {
  return new Map((JSON.parse(body) as { headers: (readonly [name: string, value: string])[] }).headers)
}

/** Who the person is for the application. */
export function seen(visit: Visit): readonly [user: string | undefined, issuer: string | undefined] {
  const received = headersOf(visit)
  return [received.get('X-Remote-User'), received.get('X-Issuer')]
}

/** The links of a page, as the browser would follow them. */
export function linksOf({ body, url }: Visit): readonly string[] {
  return [...body.matchAll(/<a [^>]*href="([^"]+)"/g)].map(
    ([, href = '']) => new URL(href.replaceAll('&amp;', '&'), url).href,
  )
}

/** Opens a page where the person chooses the provider with this path, and signs in there. */
export async function signInAt(browser: Browser, name: string, url: string): Promise<Visit> {
  const choice = await browser.get(url)
  const link = linksOf(choice).find((href) => new URL(href).pathname === `/.gatehouse/${name}/sign-in`)
  assert.ok(link, `${choice.url} offers ${name}: ${choice.body}`)
  return browser.get(link)
}

/** Whether the application answers without a sign-in. */
export function isSignedIn(browser: Browser, url: string): Promise<boolean> {
  return browser.send(url).then(({ status }) => status === 200)
}
