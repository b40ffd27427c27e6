import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Configuration } from 'oidc-provider'
import { request } from 'undici'
import { demoPeople, type DemoPerson } from '../../examples/demo/people.ts'
import type { Browser, Visit } from './browser.ts'
import { goOn } from './form-browser.ts'
import { formsOf, sendForm } from './session-page.ts'
import { startWorld, type World, type WorldOptions } from './world.ts'

/** The settings of an upstream whose people make keys. */
const upstreamWithKeys = `keys: { for_at_most: 90d, idle: 30d, header: X-Api-Key }
    rules:
      - { path: /echo, keys: true, unauthenticated: 401 }
      - { path: /events, keys: true }
      - { path: /ws, keys: true }
      - { path: /api/*, keys: true, require: { claim: fields.groups, any_of: [finance] } }
      - { path: /static/*, access: public }`

/** After this time, the gateway refreshes the tokens of a key that is used. */
export const accessTokenSeconds = 60

export interface KeyWorld extends World {
  /** The people at the provider. Without one of them, the account is gone. */
  readonly people: DemoPerson[]
  readonly page: string
}

/**
 * A provider that issues a refresh token for each sign-in. Those for `offline_access` outlive the
 * session, as the specification says (OpenID Connect Core §11).
 */
export function withOfflineTokens(configuration: Configuration): Configuration {
  return {
    ...configuration,
    ttl: { ...configuration.ttl, AccessToken: accessTokenSeconds },
    issueRefreshToken: async () => true,
    expiresWithSession: (_ctx, token) => !token.scopes.has('offline_access'),
  }
}

export async function startKeyWorld(t: TestContext, options: WorldOptions = {}): Promise<KeyWorld> {
  const people = [...demoPeople]
  const world = await startWorld(t, {
    upstreamSettings: upstreamWithKeys,
    ...options,
    session: `page: true\n  ${options.session ?? ''}`,
    providerSettings: `scopes: [openid, profile, email]\n  ${options.providerSettings ?? ''}`,
    provider: { people, adjust: withOfflineTokens, ...options.provider },
  })
  return { ...world, people, page: `${world.url}/.gatehouse/sessions` }
}

/** A browser with a session. */
export async function signedIn(world: World, person = 'jane'): Promise<Browser> {
  const browser = world.browser(person)
  assert.equal((await browser.get(`${world.url}/.gatehouse/sign-in?return_to=/echo`)).status, 200)
  return browser
}

/** Sends the form for a new key, and signs in at the provider. The last page. */
export async function askForKey(
  browser: Browser,
  { page }: Pick<KeyWorld, 'page'>,
  { name = 'DAVx5', upstream = 'orders' } = {},
): Promise<Visit> {
  const form = formsOf(await browser.get(page)).find(({ button }) => button === 'Make a key')
  assert.ok(form)
  return goOn(browser, await sendForm(browser, { ...form, fields: { ...form.fields, name, upstream } }))
}

function keyIn({ body }: Visit): string {
  return /<code>(ghk_[\w-]{64})<\/code>/.exec(body)?.[1] ?? assert.fail(body)
}

export async function makeKey(
  browser: Browser,
  world: Pick<KeyWorld, 'page'>,
  wanted?: { readonly name?: string; readonly upstream?: string },
): Promise<string> {
  return keyIn(await askForKey(browser, world, wanted))
}

export const basic = (key: string, name = 'any') => ({
  authorization: `Basic ${Buffer.from(`${name}:${key}`).toString('base64')}`,
})

export interface Sent {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** The request of a program. */
export async function send(
  url: string,
  headers: Readonly<Record<string, string | string[]>> = {},
  method = 'GET',
): Promise<Sent> {
  const response = await request(url, { method: method as 'GET', headers })
  return { status: response.statusCode, headers: response.headers, body: await response.body.text() }
}
