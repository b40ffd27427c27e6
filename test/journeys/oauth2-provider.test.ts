import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { type GitHub, startGitHub } from '../support/github.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { replacePauses } from '../support/pauses.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { until } from '../support/until.ts'
import { type Replica, runReplica, secrets } from '../support/world.ts'

interface GitHubWorld {
  readonly github: GitHub
  readonly gateway: Replica
  readonly url: string
  readonly jane: JarBrowser
  /** The fields that the application got last. */
  last(): Readonly<Record<string, string | string[] | undefined>>
  move(ms: number): void
}

interface GitHubOptions {
  readonly secret?: string
  /** Whether there is also an OpenID Provider, which no rule uses. */
  readonly isBeside?: boolean
  /** YAML of the upstream. */
  readonly upstream?: string
}

async function startWithGitHub(
  t: TestContext,
  { secret = secrets.CLIENT_SECRET, isBeside = false, upstream = '' }: GitHubOptions = {},
): Promise<GitHubWorld> {
  const github = await startGitHub(t, { id: 'Iv1.abc', secret })
  const { url: application, seen } = await startRecordingApplication(t)
  const url = `http://127.0.0.1:${await freePort()}`
  const provider = `
  kind: oauth2
  issuer: ${github.origin}/login/oauth
  metadata:
    authorization_endpoint: ${github.origin}/login/oauth/authorize
    token_endpoint: ${github.origin}/login/oauth/access_token
    userinfo_endpoint: ${github.origin}/user
  subject: id
  client_id: Iv1.abc
  client_secret: { env: CLIENT_SECRET }
  token_endpoint_auth_method: client_secret_post
  scopes: [user:email]
  claims_from:
    - { url: "${github.origin}/user/teams?per_page=100", scopes: ['read:org'], select: '[].html_url', as: teams, pages: link }`
  const staff = 'staff: { issuer: "http://127.0.0.1:1", client_id: orders, client_secret: { env: CLIENT_SECRET } }'
  let moved = 0
  const gateway = await runReplica(
    t,
    `version: 1
listen: ${url.slice('http://'.length)}
external_url: ${url}
${isBeside ? `providers:\n  ${staff}\n  github:${provider.replaceAll('\n', '\n  ')}` : `provider:${provider}`}
session:
  keys: [{ env: SESSION_KEY }]
  poll_userinfo: 60s
upstreams:
  orders:
    url: ${application.origin}
    headers: { X-Remote-User: sub, X-Login: login, X-Email: email, X-Iss: iss, Authorization: { bearer: ${isBeside ? 'id_token' : 'access_token'} } }
    ${upstream}
    rules:
      - { path: /admin/*, require: { claim: teams, any_of: ['https://github.com/orgs/acme/teams/admins'] } }
      ${isBeside ? '- { path: /safe/*, step_up: { acr_values: [mfa] } }\n      - { path: /api/*, access_tokens: true }' : ''}
      - { path: /* }
`,
    { now: () => Date.now() + moved },
  )
  return {
    ...{ github, gateway, url, jane: new JarBrowser('jane') },
    last: () => seen.at(-1) ?? {},
    move: (ms) => void (moved += ms),
  }
}

const admins = { slug: 'admins', organization: { login: 'acme' } }
const web = { slug: 'web', organization: { login: 'acme' } }

test('a person signs in with GitHub, a team opens a page, and a revoked token ends the session', async (t) => {
  const { github, url, jane, last, move } = await startWithGitHub(t)
  github.teams = [web, { slug: 'ops', organization: { login: 'acme' } }, admins]

  assert.equal((await jane.get(`${url}/orders`)).status, 200)

  assert.deepEqual([last()['x-remote-user'], last()['x-login'], last()['x-email']], ['583231', 'octocat', undefined])
  assert.equal(last()['x-iss'], `${github.origin}/login/oauth`)
  assert.equal((await jane.fetch(`${url}/admin/`)).status, 200)
  const sent = new URL(github.requests[0]?.url ?? '', github.origin).searchParams
  assert.deepEqual(
    [sent.get('scope'), sent.get('code_challenge_method'), sent.has('nonce')],
    ['user:email read:org', 'S256', false],
  )

  github.revoke()
  move(60_000)
  await until('the session has ended', async () => (await jane.fetch(`${url}/orders`)).status === 401)
})

test('a team of the same name in another organization opens nothing', async (t) => {
  const { github, url, jane } = await startWithGitHub(t)
  github.teams = [{ slug: 'admins', organization: { login: 'evil' } }]
  await jane.get(`${url}/orders`)

  assert.equal((await jane.fetch(`${url}/admin/`)).status, 403)
})

test('a session ends no earlier than its access token, and never becomes that of another person', async (t) => {
  const { github, gateway, url, jane, last, move } = await startWithGitHub(t)
  await jane.get(`${url}/orders`)
  github.user = { ...github.user, id: 1, login: 'other' }

  move(60_000)
  await jane.fetch(`${url}/orders`)
  await until('the API was read', () => gateway.log.some(({ message }) => message === 'session.upkeep_failed'))

  assert.equal((await jane.fetch(`${url}/orders`)).status, 200)
  assert.deepEqual([last()['x-remote-user'], last()['x-login']], ['583231', 'octocat'])
})

for (const [what, change, reason] of [
  ['the API has no identifier', (github) => void (github.user = { login: 'octocat' }), /provider.subject/],
  ['the identifier is not exact', (github) => void (github.user = { id: 2 ** 60 }), /provider.subject/],
  ['the response names another issuer', (github) => void (github.redirect = { iss: 'https://evil.example' }), /iss/],
  ['the person declines', (github) => void (github.redirect = { error: 'access_denied' }), /access_denied/],
] satisfies readonly (readonly [string, (github: GitHub) => void, RegExp])[])
  test(`a sign-in is refused when ${what}`, async (t) => {
    const { github, gateway, url, jane } = await startWithGitHub(t)
    change(github)

    await jane.get(`${url}/orders`)

    const failed = gateway.log.find(({ message }) => message === 'sign_in.failed')
    assert.match(String(failed?.fields['reason']), reason)
    assert.equal((await jane.fetch(`${url}/orders`)).status, 401)
  })

test('an error of GitHub, which has the status 200, is in the log with an advice', async (t) => {
  const { gateway, url, jane } = await startWithGitHub(t, { secret: 'another secret' })

  await jane.get(`${url}/orders`)

  const failed = gateway.log.find(({ message }) => message === 'sign_in.failed')
  assert.match(String(failed?.fields['reason']), /incorrect_client_credentials.*check provider.client_id/)
})

test('a Logout Token is refused, because the provider signs none', async (t) => {
  const { url } = await startWithGitHub(t)

  const response = await fetch(`${url}/.gatehouse/backchannel-logout`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ logout_token: 'e30.e30.AA' }).toString(),
  })

  assert.equal(response.status, 400)
})

test('beside an OpenID Provider, what only this one can do is possible, and GitHub never does it', async (t) => {
  replacePauses(t, { waitForDependenciesMs: 300 })
  const upstream = 'access_tokens: { audience: [https://api.example.com] }'
  const { github, url, jane, last, gateway } = await startWithGitHub(t, { isBeside: true, upstream })
  await jane.get(`${url}/.gatehouse/github/sign-in?return_to=/orders`)
  assert.deepEqual([last()['x-remote-user'], last()['authorization']], ['583231', undefined])
  const before = github.requests.length

  await jane.get(`${url}/safe/`)

  const failed = gateway.log.find(({ message }) => message === 'sign_in.failed')
  assert.equal(failed?.fields['code'], 'ERR_STEP_UP_UNMET')
  assert.ok(github.requests.length < before + 5)
  const token = [
    { alg: 'RS256', typ: 'at+jwt' },
    { iss: `${github.origin}/login/oauth`, sub: '583231' },
  ]
  const parts = token.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  const response = await fetch(`${url}/api/`, { headers: { authorization: `Bearer ${parts.join('.')}.AA` } })
  assert.equal(response.status, 401)
})
