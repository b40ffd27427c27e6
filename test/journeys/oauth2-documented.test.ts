// The files of docs/providers/oauth2.md and github.md, with programs that respond as the providers
// document it.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { blocksOf, pages } from '../docs/markdown.ts'
import { freePort } from '../support/free-port.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { type Documented, type OAuth2Server, startOAuth2 } from '../support/oauth2-server.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { until } from '../support/until.ts'
import { type Replica, runReplica, secrets } from '../support/world.ts'

const invalidGrant = [400, { error: 'invalid_grant', error_description: 'Invalid "code" in request.' }] as const
/** Of another person. It must have no effect. */
const id_token = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsIm5vbmNlIjoieCJ9.'

interface Provider {
  readonly page: string
  /** The authorization endpoint in the file, by which it is found. */
  readonly at: string
  readonly documented: Documented
  /** What the application gets about the person. */
  readonly person: Readonly<Record<string, string | undefined>>
}

const providers: Readonly<Record<string, Provider>> = {
  Discord: {
    ...{ page: 'oauth2', at: 'https://discord.com/oauth2/authorize' },
    documented: {
      ...{ authorize: '/oauth2/authorize', token: '/api/oauth2/token', pkce: true, auth: 'basic' },
      tokens: { token_type: 'Bearer', expires_in: 604_800, scope: 'identify email guilds.members.read' },
      rejected: invalidGrant,
      unauthorized: { message: '401: Unauthorized', code: 0 },
      apis: {
        '/api/users/@me': {
          ...{ id: '80351110224678912', username: 'nelly', discriminator: '0', avatar: null, verified: true },
          ...{ email: 'nelly@discord.com', flags: 64, premium_type: 1 },
        },
        '/api/users/@me/guilds/197038439483310086/member': {
          ...{ nick: 'Nelly', roles: ['41771983423143936'], joined_at: '2015-04-26T06:26:56.936000+00:00' },
        },
      },
    },
    person: { 'x-remote-user': '80351110224678912', 'x-login': 'nelly', 'x-email': 'nelly@discord.com' },
  },
  'Bitbucket Cloud': {
    ...{ page: 'oauth2', at: 'https://bitbucket.org/site/oauth2/authorize' },
    documented: {
      ...{ authorize: '/site/oauth2/authorize', token: '/site/oauth2/access_token', pkce: false, auth: 'basic' },
      tokens: { scopes: 'account email', expires_in: 7200, token_type: 'bearer', state: 'authorization_code' },
      rejected: invalidGrant,
      unauthorized: { type: 'error', error: { message: 'Access token expired.' } },
      apis: {
        '/2.0/user': {
          ...{ type: 'user', uuid: '{c788b2da-b7a2-404c-9e26-d3f077557007}', username: 'tutorials' },
          ...{ account_id: '557058:c0b72ad0', display_name: 'Jane Doe', nickname: 'tutorials' },
        },
        '/2.0/user/emails': {
          ...{ pagelen: 100, page: 1, size: 2 },
          values: [
            { type: 'email', email: 'old@example.com', is_primary: false, is_confirmed: true },
            { type: 'email', email: 'jane@example.com', is_primary: true, is_confirmed: true },
          ],
        },
      },
    },
    person: {
      ...{ 'x-remote-user': '{c788b2da-b7a2-404c-9e26-d3f077557007}', 'x-name': 'Jane Doe' },
      'x-email': 'jane@example.com',
    },
  },
  Gitea: {
    ...{ page: 'oauth2', at: 'https://git.example.com/login/oauth/authorize' },
    documented: {
      ...{ authorize: '/login/oauth/authorize', token: '/login/oauth/access_token', pkce: true, auth: 'basic' },
      tokens: { token_type: 'bearer', expires_in: 3600, id_token },
      rejected: [400, { error: 'invalid_grant', error_description: 'grant does not exist' }],
      unauthorized: { message: 'invalid username, password or token', url: 'https://git.example.com/api/swagger' },
      apis: {
        '/api/v1/user': { id: 7, login: 'jane', full_name: 'Jane Doe', email: 'jane@example.com', is_admin: false },
        '/api/v1/user/orgs': [{ id: 2, name: 'staff', username: 'staff', visibility: 'private' }],
      },
    },
    person: { 'x-remote-user': '7', 'x-login': 'jane', 'x-email': 'jane@example.com' },
  },
  Nextcloud: {
    ...{ page: 'oauth2', at: 'https://cloud.example.com/apps/oauth2/authorize' },
    documented: {
      ...{ authorize: '/apps/oauth2/authorize', token: '/apps/oauth2/api/v1/token', pkce: false, auth: 'basic' },
      tokens: { token_type: 'Bearer', expires_in: 3600, user_id: 'jane', id_token },
      rejected: invalidGrant,
      unauthorized: { ocs: { meta: { status: 'failure', statuscode: 997 }, data: [] } },
      apis: {
        '/ocs/v2.php/cloud/user': {
          ocs: {
            meta: { status: 'ok', statuscode: 200, message: 'OK' },
            data: { id: 'jane', displayname: 'Jane Doe', email: 'jane@example.com', groups: ['staff'] },
          },
        },
      },
    },
    person: { 'x-remote-user': 'jane', 'x-name': 'Jane Doe', 'x-email': 'jane@example.com' },
  },
  'a GitHub App with tokens that expire': {
    ...{ page: 'github', at: 'https://github.com/login/oauth/authorize' },
    documented: {
      ...{ authorize: '/login/oauth/authorize', token: '/login/oauth/access_token', pkce: true, auth: 'form' },
      tokens: { expires_in: 28_800, refresh_token_expires_in: 15_897_600, scope: '', token_type: 'bearer' },
      rejected: [200, { error: 'bad_refresh_token', error_description: 'The refresh token is incorrect or expired.' }],
      unauthorized: { message: 'Bad credentials', status: '401' },
      apis: {
        '/user': { login: 'octocat', id: 583_231, name: 'Mona', email: null },
        '/user/teams': [{ slug: 'staff', html_url: 'https://github.com/orgs/acme/teams/staff' }],
        '/user/emails': [{ email: 'octocat@github.com', primary: true, verified: true, visibility: 'public' }],
      },
    },
    person: { 'x-remote-user': '583231', 'x-login': 'octocat', 'x-email': 'octocat@github.com' },
  },
}

interface DocumentedWorld {
  readonly provider: OAuth2Server
  readonly gateway: Replica
  readonly url: string
  readonly jane: JarBrowser
  /** The fields that the application got last. */
  last(): Readonly<Record<string, unknown>>
  move(ms: number): void
}

/** Runs the file of the page at addresses of this machine. */
async function startDocumented(t: TestContext, { page, at, documented }: Provider): Promise<DocumentedWorld> {
  const provider = await startOAuth2(t, documented, secrets.CLIENT_SECRET)
  const { url: application, seen } = await startRecordingApplication(t)
  const url = `http://127.0.0.1:${await freePort()}`
  const found = pages.find(({ path }) => path === `docs/providers/${page}.md`)
  const file = found && blocksOf(found).find(({ text }) => text.includes(at))
  assert.ok(file, `no file with ${at}`)
  const { origin } = new URL(at)
  const here = file.text
    // First, because the port of `url` may begin with 3000.
    .replace('url: http://127.0.0.1:3000', `url: ${application.origin}`)
    .replace('external_url: https://orders.example.com', `listen: ${new URL(url).host}\nexternal_url: ${url}`)
    .replaceAll(/(issuer|_endpoint|url): https:\/\/[\w.]+/g, (whole, name: string) =>
      whole.includes('127.0.0.1') ? whole : `${name}: ${provider.origin}`,
    )
  assert.ok(!here.includes(`issuer: ${origin}`))
  let moved = 0
  const gateway = await runReplica(t, here, { now: () => Date.now() + moved })
  return {
    ...{ provider, gateway, url, jane: new JarBrowser('jane') },
    last: () => seen.at(-1) ?? {},
    move: (ms) => void (moved += ms),
  }
}

for (const [name, documented] of Object.entries(providers)) {
  test(`a person signs in with ${name}, by the file of its page`, async (t) => {
    const { provider, url, jane, last, gateway } = await startDocumented(t, documented)

    assert.equal((await jane.get(`${url}/orders`)).status, 200, JSON.stringify(gateway.log))

    const { person } = documented
    assert.deepEqual(Object.fromEntries(Object.keys(person).map((field) => [field, last()[field]])), person)
    assert.deepEqual(provider.granted, ['authorization_code'])
  })

  test(`the access token of ${name} is refreshed, and the session ends when its refresh token is rejected`, async (t) => {
    const { provider, url, jane, last, move } = await startDocumented(t, {
      ...documented,
      documented: { ...documented.documented, tokens: { ...documented.documented.tokens, expires_in: 60 } },
    })
    await jane.get(`${url}/orders`)

    move(61_000)
    assert.equal((await jane.fetch(`${url}/orders`)).status, 200)
    assert.deepEqual(provider.granted, ['authorization_code', 'refresh_token'])
    assert.equal(last()['x-remote-user'], documented.person['x-remote-user'])

    provider.revoke()
    move(61_000)
    await until('the session has ended', async () => (await jane.fetch(`${url}/orders`)).status === 401)
  })

  test(`a sign-in with ${name} is refused when its API names no person`, async (t) => {
    const { gateway, url, jane } = await startDocumented(t, {
      ...documented,
      documented: { ...documented.documented, apis: {} },
    })

    await jane.get(`${url}/orders`)

    const failed = gateway.log.find(({ message }) => message === 'sign_in.failed')
    assert.match(String(failed?.fields['reason']), /the API about the person responded with status 404/)
    assert.equal((await jane.fetch(`${url}/orders`)).status, 401)
  })
}
