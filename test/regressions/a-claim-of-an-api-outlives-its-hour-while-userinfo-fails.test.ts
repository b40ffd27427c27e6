import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { graph, startApi } from '../support/claims-apis.ts'
import { until } from '../support/until.ts'
import { startSignedIn } from '../tokens/signed-in.ts'

const upstreamSettings = `rules:
      - { path: /admin/*, require: { claim: groups, any_of: [admins] } }
      - { path: /guests/*, require: { claim: groups, none_of: [suspended] } }
      - { path: /* }`

/** Jane has a group of an API. */
async function startAdmin(t: TestContext, session: string, tokenMinutes = 9 * 60) {
  const api = await startApi(t, graph(['admins']))
  const entry = `{ url: "${api.origin}/me", select: "value[].id", as: groups }`
  const { world, jane, ask } = await startSignedIn(t, {
    ...{ session, upstreamSettings, providerSettings: `claims_from: [${entry}]` },
  })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 60 * tokenMinutes))
  world.moveClock(11_000)
  await ask()
  const isAdmitted = async (path: string) => (await jane.fetch(`${world.url}${path}`)).status !== 403
  assert.equal(await isAdmitted('/admin/'), true)
  return { world, api, ask, isAdmitted }
}

/** Lets minutes pass, with a request in each. */
async function pass(minutes: number, { world, ask }: Pick<Awaited<ReturnType<typeof startAdmin>>, 'world' | 'ask'>) {
  for (let minute = 0; minute < minutes; minute++) {
    world.moveClock(60_000)
    assert.equal((await ask()).status, 200)
  }
}

test('While UserInfo fails, a claim of an API counts for an hour, and is withheld then', async (t) => {
  const { world, ask, isAdmitted } = await startAdmin(t, 'poll_userinfo: 60s')
  const mend = world.provider.fault('/oauth/userinfo', (_req, res) => res.writeHead(503).end())

  await pass(58, { world, ask })
  assert.equal(await isAdmitted('/admin/'), true)
  await pass(3, { world, ask })

  assert.equal(await isAdmitted('/admin/'), false)
  assert.equal(await isAdmitted('/guests/'), false)
  mend()
  await until('the claim counts again', async () => {
    world.moveClock(60_000)
    return isAdmitted('/admin/')
  })
})

test('A claim of an API that was not read at a refresh counts for an hour', async (t) => {
  const { world, ask, isAdmitted } = await startAdmin(t, 'refresh_before: 1m', 50)
  world.provider.fault('/oauth/userinfo', (_req, res) => res.writeHead(503).end())

  await pass(55, { world, ask })
  assert.equal(await isAdmitted('/admin/'), true)
  await pass(6, { world, ask })

  assert.equal(await isAdmitted('/admin/'), false)
  assert.equal(await isAdmitted('/guests/'), false)
})

test('A person who returns after two hours waits for the claim, and is not denied', async (t) => {
  const { world, api, isAdmitted } = await startAdmin(t, 'poll_userinfo: 60s\n  idle_timeout: 8h')
  world.moveClock(2 * 3600_000)
  assert.equal(await isAdmitted('/guests/'), true)

  api.respond(graph(['suspended']))
  world.moveClock(2 * 3600_000)

  assert.equal(await isAdmitted('/admin/'), false)
})
