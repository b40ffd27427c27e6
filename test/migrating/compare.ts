import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { test, type TestContext } from 'node:test'
import type { Configuration } from 'oidc-provider'
import { demoPeople } from '../../examples/demo/people.ts'
import { Missing } from '../applications/installed.ts'
import { startApplication, type ReceivingApplication } from '../proxies/site.ts'
import { Browser, navigation, type Visit } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { startProvider } from '../support/provider.ts'
import { startRedis } from '../support/redis.ts'
import { runReplica, secrets } from '../support/world.ts'
import { peopleOf, type Pair, type People } from './pairs.ts'

/** The program of a page, with the addresses of a test in its configuration. */
export interface Peer {
  readonly name: string
  /** The path of its redirect URI. */
  readonly callback: string
  /** The status for a signed-in person without access. */
  readonly forbidden: number
  /** What to do before it can be tested, or false. */
  readonly skip: string | false
  /** Starts it at `url`. */
  start(t: TestContext, theirs: string, url: URL): Promise<unknown>
  /** Whether the page says that a request has another outcome there. */
  readonly differs?: (method: string, path: string) => boolean
  /** Our configuration for a gateway at `url`, as `gatehouse import` writes it. */
  readonly imported?: (t: TestContext, theirs: string, url: string) => Promise<string>
}

type Outcome = 'pass' | 'sign_in' | 'unauthorized' | 'forbidden' | `status ${number}`

type Headers = Readonly<Record<string, string>>

export interface Side {
  /** Sends a request as a page load of a person, or of nobody. */
  ask(person: string | undefined, method: string, path: string, headers?: Headers): Promise<Outcome>
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Installs a program. @returns what to do if that is not possible */
export function reasonToSkip(install: () => unknown): string | false {
  try {
    install()
    return false
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    return error.message
  }
}

/**
 * A test for each pair: both programs do what the page says, and the same with all people and
 * methods.
 */
export function comparePairs(peer: Peer, pairs: readonly Pair[]): void {
  for (const pair of pairs)
    test(`${peer.name} and Gatehouse do the same: ${pair.place}`, { skip: peer.skip }, async (t) => {
      const { theirs, ours } = await startBoth(t, peer, pair)
      const wrong: string[] = []
      for (const { as, method, path, expect } of pair.statements)
        for (const [name, side] of [[peer.name, theirs] as const, ...ours]) {
          const outcome = await side.ask(as?.sub, method, path)
          if (outcome !== expect) wrong.push(`${name}: ${as?.sub} ${method} ${path}: ${outcome}, not ${expect}`)
        }
      for (const person of [undefined, ...peopleOf(pair.statements).keys()])
        for (const path of new Set(pair.statements.map((each) => each.path)))
          for (const spelling of [path, ...spellings(path)])
            for (const method of methods.filter((each) => peer.differs?.(each, spelling) !== true)) {
              const there = await theirs.ask(person, method, spelling)
              for (const [name, side] of ours) {
                const here = await side.ask(person, method, spelling)
                const isSame =
                  spelling === path ? admission(there) === admission(here) : here !== 'pass' || there === 'pass'
                if (!isSame) wrong.push(`${name}: ${person} ${method} ${spelling}: ${here}, not ${there}`)
              }
            }
      assert.deepEqual(wrong, [])
    })
}

/** Other spellings of a path: here Gatehouse may deny more, and admit nobody else. */
function spellings(path: string): string[] {
  return [
    path.toUpperCase(),
    `${path}/`,
    `${path}x`,
    `/${path}`,
    `${path}/x`,
    `${path};x`,
    path.replace(/\/$/, ''),
  ].filter((other) => other !== path)
}

/** Only page loads are led to the sign-in by Gatehouse; other requests get 401. */
function admission(outcome: Outcome): string {
  return outcome === 'unauthorized' ? 'sign_in' : outcome
}

async function startBoth(t: TestContext, peer: Peer, { theirs, ours, statements }: Pair) {
  const signInAt = statements.find(({ as, expect }) => as === undefined && expect === 'sign_in')?.path
  assert.ok(signInAt !== undefined, 'a test must say which page leads to the sign-in')
  const [port, importedPort] = [await freePort(), await freePort()]
  const [url, importedUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${importedPort}`]
  const callbacks = [url, importedUrl].map((at) => `${at}/.gatehouse/callback`).concat(importedUrl + peer.callback)
  const there = await startPeer(t, peer, { theirs, people: peopleOf(statements), signInAt, callbacks })
  const { side: byHand } = await startGateway(t, url, signInAt, (application) =>
    there
      .placed(ours, url, application)
      .replace('version: 1', `version: 1\nlisten: 127.0.0.1:${port}`)
      .replaceAll('{ file: /run/secrets/client_secret }', '{ env: CLIENT_SECRET }')
      .replaceAll('{ file: /run/secrets/session_key }', '{ env: SESSION_KEY }'),
  )
  const { imported } = peer
  if (imported === undefined) return { theirs: there.side, ours: [['Gatehouse', byHand] as const] }
  const { side: byImport } = await startGateway(t, importedUrl, signInAt, (application) =>
    imported(t, there.placed(theirs, importedUrl, application), importedUrl),
  )
  return { theirs: there.side, ours: [['Gatehouse', byHand] as const, ['import', byImport] as const] }
}

/** Starts a gateway at `url` with a configuration for its application. */
export async function startGateway(
  t: TestContext,
  url: string,
  signInAt: string,
  fileFor: (application: ReceivingApplication) => string | Promise<string>,
) {
  const application = await startApplication(t)
  await runReplica(t, await fileFor(application), { now: () => Date.now() })
  return { side: sideOf({ url, application, callback: '', forbidden: 403, signInAt }), application }
}

export interface PeerParts {
  readonly theirs: string
  readonly people: People
  /** A page that leads to the sign-in. */
  readonly signInAt: string
  /** The redirect URIs of other programs for which people sign in at the same provider. */
  readonly callbacks?: readonly string[]
}

/**
 * Starts the other program with a configuration, a provider and an application. @throws {Missing}
 */
export async function startPeer(t: TestContext, peer: Peer, { theirs, people, signInAt, callbacks = [] }: PeerParts) {
  const url = `http://127.0.0.1:${await freePort()}`
  const provider = await startProviderOf(t, people, [url + peer.callback, ...callbacks])
  const application = await startApplication(t)
  const redis = await startRedis(t)
  const placed = (text: string, site: string, { port }: ReceivingApplication) =>
    text
      .replaceAll('https://id.example.com', provider.issuer)
      .replaceAll('https://orders.example.com', site)
      .replaceAll(/127\.0\.0\.1:3000\b/g, `127.0.0.1:${port}`)
      .replaceAll('rediss://redis:6379', redis.url)
      .replaceAll('redis:6379', new URL(redis.url).host)
  await peer.start(t, placed(theirs, url, application), new URL(url))
  application.received.length = 0
  return {
    side: sideOf({ url, application, callback: peer.callback, forbidden: peer.forbidden, signInAt }),
    url,
    application,
    placed,
  }
}

/** A provider whose people have these claims. */
function startProviderOf(t: TestContext, people: People, redirect_uris: readonly string[]) {
  const [anybody] = demoPeople
  assert.ok(anybody)
  return startProvider(t, {
    client_id: 'orders',
    client_secret: secrets.CLIENT_SECRET,
    redirect_uris,
    post_logout_redirect_uris: [],
    backchannel_logout_uri: new URL('/.gatehouse/backchannel-logout', redirect_uris[0]).href,
    people: [...people.keys()].map((sub) => ({ ...anybody, sub })),
    adjust: (base): Configuration => ({
      ...base,
      pkce: { required: () => false },
      claims: { openid: [...new Set([...people.values()].flatMap((each) => Object.keys(each)))] },
      conformIdTokenClaims: false,
      findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => people.get(sub) ?? { sub } }),
    }),
  })
}

/** Sends a request with this path, which the browser would write in another way. */
async function sendAsWritten(
  browser: Browser,
  url: string,
  path: string,
  options: { readonly method: string; readonly headers: Headers },
): Promise<Pick<Visit, 'status' | 'headers'>> {
  const { pathname, search } = new URL(url + path)
  if (pathname + search === path) return browser.send(url + path, options)
  const cookies = [...browser.cookies].filter(([, cookie]) => path.startsWith(cookie.path))
  const cookie = cookies.map(([name, { value }]) => `${name}=${value}`).join('; ')
  const headers = { ...navigation, ...(cookie !== '' && { cookie }), ...options.headers }
  const sent = request(url, { path, method: options.method, headers, agent: false })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return { status: response.statusCode ?? 0, headers: response.headers }
}

interface SideParts {
  readonly url: string
  readonly application: ReceivingApplication
  /** A program may refuse a person here, before there is a session. */
  readonly callback: string
  readonly forbidden: number
  /** A page that leads to the sign-in. */
  readonly signInAt: string
}

function sideOf({ url, application, callback, forbidden, signInAt }: SideParts): Side {
  const signedIn = new Map<string, Browser>()
  const refused = new Set<string | undefined>()
  // Nobody has a new browser for each request: too many sign-ins that have begun are an error.
  const browserOf = async (person: string | undefined) => {
    if (person === undefined) return new Browser('')
    const known = signedIn.get(person)
    if (known !== undefined) return known
    const browser = new Browser(person)
    const visit = await browser.get(url + signInAt)
    if (visit.status >= 400 && new URL(visit.url).pathname === callback) refused.add(person)
    signedIn.set(person, browser)
    return browser
  }
  return {
    ask: async (person, method, path, headers) => {
      const browser = await browserOf(person)
      application.received.length = 0
      const options = { method, headers: { 'sec-fetch-site': 'same-origin', ...headers } }
      let visit: Pick<Visit, 'status' | 'headers'> = await sendAsWritten(browser, url, path, options)
      // A program may redirect to the usual spelling of a path.
      const location = new URL(String(visit.headers['location'] ?? ''), url)
      if (visit.status === 301 && location.origin === url) visit = await browser.send(location.href, options)
      const { status } = visit
      // What counts is whether the application gets the request: HEAD has no content.
      if (application.received.length > 0) return 'pass'
      const outcome = status >= 301 && status <= 303 ? 'sign_in' : status === 401 ? 'unauthorized' : undefined
      if (person !== undefined && (status === forbidden || (refused.has(person) && outcome !== undefined)))
        return 'forbidden'
      return outcome ?? `status ${status}`
    },
  }
}
