import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld, type WorldOptions } from '../support/world.ts'

const metadataPath = '/.well-known/openid-configuration'

/**
 * A gateway whose provider has no UserInfo endpoint, and puts an e-mail address into its ID Tokens.
 */
async function startWithoutUserinfo(t: Parameters<typeof startWorld>[0], options: WorldOptions) {
  const world = await startWorld(t, {
    ...options,
    providerStartsDown: true,
    upstreamSettings: options.upstreamSettings ?? '',
  })
  world.provider.bend(metadataPath, (body) => delete body['userinfo_endpoint'])
  world.provider.fault('/oauth/userinfo', (_req, res) => void res.writeHead(404).end())
  await world.provider.up()
  // An attempt may have failed a moment ago, and the next one comes after a pause.
  world.moveClock(60_000)
  return world
}

test('A provider without a UserInfo endpoint works when the ID Token has all claims for headers and rules', async (t) => {
  const world = await startWithoutUserinfo(t, {
    providerSettings: 'id_token_claims: [auth_time]',
    headers: 'X-Remote-User: sub\n      X-Signed-In: auth_time',
    session: 'poll_userinfo: 60s',
  })
  const jane = world.browser()

  const page = await jane.get(`${world.url}/echo`)

  assert.equal(page.status, 200)
  assert.match(page.body, /jane/)
  world.moveClock(5 * 60_000)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  assert.equal(world.provider.hits('/oauth/userinfo'), 0)
})

for (const [what, options] of [
  ['header', { headers: 'X-Remote-User: sub\n      X-Email: email' }],
  [
    'rule',
    {
      headers: 'X-Remote-User: sub',
      upstreamSettings: 'rules: [{ path: /*, require: { claim: email, any_of: [a] } }]',
    },
  ],
] satisfies readonly (readonly [string, WorldOptions])[])
  test(`A ${what} that only UserInfo could fill is an error when there is no UserInfo endpoint`, async (t) => {
    const world = await startWithoutUserinfo(t, options)

    const page = await world.browser().get(`${world.url}/echo`)

    assert.equal(page.status, 503)
    const warning = world.replicas[0]?.log.findLast(({ message }) => message === 'provider.unavailable')
    assert.match(
      String(warning?.fields['reason']),
      /no userinfo_endpoint: add to provider\.id_token_claims the claims that its ID Tokens contain: email$/,
    )
  })
