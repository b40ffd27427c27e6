import assert from 'node:assert/strict'
import { test } from 'node:test'
import { graph, startApi } from '../support/claims-apis.ts'
import { until } from '../support/until.ts'
import { startSignedIn } from '../tokens/signed-in.ts'

const upstreamSettings = `rules:
      - { path: /admin/*, require: { claim: groups, any_of: [admins] } }
      - { path: /guests/*, require: { claim: groups, none_of: [suspended] } }
      - { path: /* }`

for (const [what, every, isDown] of [
  ['is not due', ', every: 12h', false],
  ['is away', '', true],
] as const)
  test(`While an API ${what}, groups that are merged with its own are those that UserInfo has now`, async (t) => {
    const api = await startApi(t, graph(['staff']))
    const entry = `{ url: "${api.origin}/me", select: "value[].id", as: groups, merge: true ${every} }`
    const { world, jane, ask, told } = await startSignedIn(t, {
      session: 'poll_userinfo: 60s',
      headers: 'X-Groups: { claim: groups, join: "," }',
      ...{ upstreamSettings, providerSettings: `claims_from: [${entry}]` },
    })
    world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 9 * 3600))
    let groups = ['admins']
    world.provider.bend('/oauth/userinfo', (body) => void (body['groups'] = groups))
    const isAdmitted = async (path: string) => (await jane.fetch(`${world.url}${path}`)).status !== 403
    world.moveClock(11_000)
    // The request waits for the refresh, and for UserInfo behind it.
    assert.equal((await told()).get('x-groups'), 'admins,staff')

    if (isDown) api.respond((_req, res) => res.writeHead(503).end())
    groups = ['suspended']
    const polls = world.provider.hits('/oauth/userinfo')
    // The second reading begins after the first one was stored.
    for (const reading of [1, 2])
      await until('UserInfo is read', async () => {
        world.moveClock(61_000)
        await ask()
        return world.provider.hits('/oauth/userinfo') >= polls + reading
      })

    assert.equal(await isAdmitted('/admin/'), false)
    assert.equal(await isAdmitted('/guests/'), false)
    assert.equal((await told()).get('x-groups'), 'suspended,staff')
  })
