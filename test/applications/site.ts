import assert from 'node:assert/strict'
import process from 'node:process'
import { after, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { startKeycloak, type Keycloak } from '../keycloak/keycloak.ts'
import { freePort } from '../support/free-port.ts'
import { startProvider } from '../support/provider.ts'
import { until } from '../support/until.ts'
import { runReplica, secrets, type Replica } from '../support/world.ts'
import { upstreamSettings } from './pages.ts'

/** The people of each provider. Jane is in the group `admins`. */
const people = {
  'Jane Doe': { sub: 'jane', groups: ['admins'] },
  'Zoë Müller': { sub: 'zoe', groups: ['sales'] },
} as const

export type PersonName = keyof typeof people

/** An application behind a gateway, and the provider where its people sign in. */
export interface Site {
  readonly url: string
  readonly replica: Replica
  /** Moves the clock of the gateway, in ms. */
  moveClock(ms: number): void
  /** Opens a path, and signs in at the page of the provider. */
  signIn(page: Page, path: string, person?: PersonName): Promise<void>
  /** Signs in at the page of the provider, which the browser shows. */
  choose(page: Page, person: PersonName): Promise<void>
  /** Waits until the browser shows the page of the provider where people sign in. */
  asks(page: Page): Promise<void>
  /** The provider ends its sessions of a person, and sends a Logout Token. */
  endAtProvider(person: PersonName): Promise<void>
}

interface Client {
  readonly callback: string
  readonly backchannelLogout: string
  readonly signedOut: string
}

interface Provider extends Pick<Site, 'choose' | 'asks' | 'endAtProvider'> {
  /** YAML below `provider:`, indented by two. */
  readonly settings: string
  /** The claim path of the groups of a person. */
  readonly groups: string
}

/**
 * Starts a gateway for an application, with the settings of its page in docs/applications.
 * @param settings others in their place: YAML of an upstream
 */
export async function startSite(
  t: TestContext,
  application: { readonly url: URL },
  page: string,
  session = 'idle_timeout: 1h',
  settings = upstreamSettings(page),
): Promise<Site> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const start = process.env['PROVIDER'] === 'keycloak' ? startRealm : startDemo
  const {
    settings: providerSettings,
    groups,
    ...provider
  } = await start(t, {
    callback: `${url}/.gatehouse/callback`,
    backchannelLogout: `${url}/.gatehouse/backchannel-logout`,
    signedOut: `${url}/.gatehouse/signed-out`,
  })
  const upstream = settings.replaceAll(/(?<=: )groups\b/g, groups)
  let moved = 0
  const replica = await runReplica(
    t,
    `version: 1
listen: 127.0.0.1:${port}
external_url: ${url}
shutdown: { drain_timeout: 500ms }
provider:
  ${providerSettings}
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
session: { keys: [{ env: SESSION_KEY }], store: memory, ${session} }
upstreams:
  application:
    url: ${application.url.origin}
${upstream.replaceAll(/^(?=.)/gm, '    ')}`,
    { now: () => Date.now() + moved },
  )
  const ended = () => replica.log.filter(({ message }) => message === 'session.ended').length
  return {
    ...provider,
    url,
    replica,
    moveClock: (ms) => void (moved += ms),
    signIn: async (page, path, person = 'Jane Doe') => {
      await page.goto(url + path)
      await provider.choose(page, person)
      await page.waitForURL((at) => at.origin === url && !at.pathname.startsWith('/.gatehouse/'))
    },
    endAtProvider: async (person) => {
      const before = ended()
      await provider.endAtProvider(person)
      await until('the session has ended', () => ended() > before)
    },
  }
}

async function startDemo(t: TestContext, client: Client): Promise<Provider> {
  const provider = await startProvider(t, {
    client_id: 'orders',
    client_secret: secrets.CLIENT_SECRET,
    redirect_uris: [client.callback],
    post_logout_redirect_uris: [client.signedOut],
    backchannel_logout_uri: client.backchannelLogout,
  })
  return {
    settings: `issuer: ${provider.issuer}\n  claims: { fields: https://id.example.com/claims/fields }`,
    groups: 'fields.groups',
    choose: (page, person) => page.getByRole('button', { name: person }).click(),
    asks: (page) => page.getByRole('heading', { name: 'Who are you today?' }).waitFor(),
    endAtProvider: async (person) => {
      const session = provider.sessions().find(({ sub }) => sub === people[person].sub)
      await provider.endSession(session?.sid ?? assert.fail(`${person} has no session`))
    },
  }
}

const password = 'correct horse battery'
let keycloak: Promise<Keycloak> | undefined
after(async () => (await keycloak)?.stop())

/** One Keycloak for all journeys, with a realm for each. */
function runningKeycloak(): Promise<Keycloak> {
  keycloak ??= startKeycloak(process.env['KEYCLOAK_HOME'] ?? assert.fail('KEYCLOAK_HOME is not set'))
  return keycloak
}

async function startRealm(_t: TestContext, client: Client): Promise<Provider> {
  const realm = await (
    await runningKeycloak()
  ).createRealm(
    {
      clientId: 'orders',
      secret: secrets.CLIENT_SECRET,
      redirectUris: [client.callback],
      frontchannelLogout: false,
      attributes: {
        'backchannel.logout.url': client.backchannelLogout,
        'backchannel.logout.session.required': 'true',
        'post.logout.redirect.uris': client.signedOut,
      },
      protocolMappers: [
        {
          name: 'groups',
          protocol: 'openid-connect',
          protocolMapper: 'oidc-group-membership-mapper',
          config: { 'claim.name': 'groups', 'full.path': 'false', 'userinfo.token.claim': 'true' },
        },
      ],
    },
    // The journeys move the clock of the gateway, and Keycloak does not follow.
    { accessTokenLifespan: 7200, ssoSessionIdleTimeout: 7200 },
  )
  const ids = new Map<PersonName, string>()
  for (const [name, { sub, groups }] of Object.entries(people)) {
    const [firstName, lastName] = name.split(' ')
    const credentials = [{ type: 'password', value: password, temporary: false }]
    const user = { username: sub, email: `${sub}@example.com`, emailVerified: true, enabled: true }
    // The realm has Jane already.
    if (sub !== 'jane') await realm.admin('POST', '/users', { ...user, firstName, lastName, credentials })
    const id = await idOf(`/users?username=${sub}`)
    ids.set(name as PersonName, id)
    for (const group of groups) {
      await realm.admin('POST', '/groups', { name: group })
      await realm.admin('PUT', `/users/${id}/groups/${await idOf(`/groups?search=${group}`)}`)
    }
  }
  async function idOf(path: string): Promise<string> {
    const [found] = (await realm.admin('GET', path)) as { readonly id: string }[]
    return found?.id ?? assert.fail(`Keycloak has nothing at ${path}`)
  }
  return {
    settings: `issuer: ${realm.issuer}`,
    groups: 'groups',
    choose: async (page, person) => {
      await page.locator('#username').fill(people[person].sub)
      await page.locator('#password').fill(password)
      await page.locator('#kc-login').click()
    },
    asks: (page) => page.locator('#kc-login').waitFor(),
    endAtProvider: async (person) => void (await realm.admin('POST', `/users/${ids.get(person)}/logout`)),
  }
}
