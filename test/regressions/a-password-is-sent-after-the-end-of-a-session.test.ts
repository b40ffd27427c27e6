import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { decide, type DecisionPoint, startDecisionPoint } from '../support/decision-point.ts'
import { readMetrics } from '../support/metrics.ts'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import type { Json } from '../support/signing-provider.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

async function start(t: TestContext, settings = '') {
  const point = await startDecisionPoint(t)
  const application = await startSigningInApplication(t)
  application.passwords.set('jane', 'jane.doe@example.com')
  const world = await startWorld(t, {
    upstream: application.url,
    session: 'absolute_timeout: 1h',
    settings: 'admin: { listen: 127.0.0.1:0 }',
    upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { page: /login, fields: { user: "{username}", pass: "{password}" }, password: { claim: email } }
    authorize_with: { url: "${point.url}", timeout: 10s }
    ${settings}`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  return { point, application, world, jane }
}

async function endSession({ provider, postLogoutToken }: World): Promise<void> {
  const session = provider.sessions().find(({ sub }) => sub === 'jane')
  const logout_token = await provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
  assert.equal((await postLogoutToken({ logout_token })).status, 200)
}

/** The sign-ins that were left to the person. */
const leftIn = ({ replicas }: World) =>
  replicas.flatMap(({ log }) => log.filter(({ message }) => message === 'application_sign_in.left'))

/** Permits everything, but holds the decision about the request with the password. */
function holdDecision(point: DecisionPoint): Promise<() => void> {
  const held = Promise.withResolvers<() => void>()
  point.answer = (req, res, evaluation) => {
    const permit = () => decide({ decision: true })(req, res, evaluation)
    if ((evaluation['action'] as Json)['name'] === 'POST') held.resolve(permit)
    else permit()
  }
  return held.promise
}

/** Signs in at the application from another browser: sign-ins with one account take turns. */
async function signInElsewhere(world: World, point: DecisionPoint): Promise<void> {
  point.answer = decide({ decision: true })
  assert.match((await world.browser().get(`${world.url}/orders`)).body, /Orders of jane/)
}

test('A password is not sent when the session reaches absolute_timeout while the decision about it is awaited', async (t) => {
  const { point, application, world, jane } = await start(t)
  const held = holdDecision(point)
  const response = jane.send(`${world.url}/orders`)
  const permit = await held
  world.moveClock(60 * 60_000)

  permit()

  assert.match(String((await response).headers['location']), /sign-in/)
  await signInElsewhere(world, point)
  assert.equal(application.attempts.length, 1)
  assert.deepEqual(leftIn(world), [])
})

test('A password is not sent when the session ends while the decision about it is awaited', async (t) => {
  const { point, application, world, jane } = await start(t)
  const held = holdDecision(point)
  const response = jane.send(`${world.url}/orders`)
  const permit = await held
  await endSession(world)

  permit()

  assert.equal((await response).status, 401)
  await signInElsewhere(world, point)
  assert.equal(application.attempts.length, 1)
  assert.deepEqual(leftIn(world), [])
})

test('A password is not sent when the session ends while the request waits for a connection', async (t) => {
  const { point, application, world, jane } = await start(t, 'max_connections: 1')
  const noa = world.browser('noa')
  await noa.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const slow = Promise.withResolvers<ServerResponse>()
  application.respond = (req, res) => {
    if (req.url === '/slow') slow.resolve(res)
    return req.url === '/slow'
  }
  const held = holdDecision(point)
  const response = jane.send(`${world.url}/orders`)
  const permit = await held
  const ofNoa = noa.send(`${world.url}/slow`)
  const busy = await slow.promise
  permit()
  const adminUrl = `http://127.0.0.1:${world.replicas[0]?.gateway.adminAddress?.port}`
  await until('the request with the password waits', async () => {
    const metrics = await readMetrics(adminUrl)
    return metrics.value('gatehouse_upstream_waiting_requests{upstream="orders"}') === 1
  })
  await endSession(world)

  busy.end('slow')

  assert.equal((await response).status, 401)
  assert.equal((await ofNoa).body, 'slow')
  await signInElsewhere(world, point)
  assert.equal(application.attempts.length, 1)
  assert.deepEqual(leftIn(world), [])
})
