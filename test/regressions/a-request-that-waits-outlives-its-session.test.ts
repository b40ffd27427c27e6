import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startAskedWorld } from '../check-requests/asking.ts'
import { decide, startDecisionPoint } from '../support/decision-point.ts'
import { startFormApplication } from '../support/form-application.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { startWorld, type World } from '../support/world.ts'

/** Ends the only session by a Logout Token, of which another replica learns too. */
async function endSession({ provider, postLogoutToken }: World): Promise<void> {
  const [session] = provider.sessions()
  const logout_token = await provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
  assert.equal((await postLogoutToken({ logout_token })).status, 200)
}

test('A request whose session ends while its decision is awaited gets 401, and the application nothing', async (t) => {
  const point = await startDecisionPoint(t)
  const { url: upstream, seen } = await startRecordingApplication(t)
  const upstreamSettings = `authorize_with: { url: "${point.url}", timeout: 10s }`
  const world = await startWorld(t, { upstream, upstreamSettings })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  seen.length = 0
  const held = Promise.withResolvers<() => void>()
  point.answer = (req, res, evaluation) => held.resolve(() => decide({ decision: true })(req, res, evaluation))
  const response = jane.fetch(`${world.url}/echo`)
  const permit = await held.promise
  await endSession(world)

  permit()

  assert.equal((await response).status, 401)
  assert.deepEqual(seen, [])
})

test('A file is not sent when its session ends while the decision is awaited', async (t) => {
  const point = await startDecisionPoint(t)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'report.txt'), 'for Jane')
  const world = await startWorld(t, {
    upstreamSettings: `authorize_with: { url: "${point.url}", timeout: 10s }
    rules: [{ path: /reports/*, respond: { files: ${folder} } }]`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const held = Promise.withResolvers<() => void>()
  point.answer = (req, res, evaluation) => held.resolve(() => decide({ decision: true })(req, res, evaluation))
  const response = jane.fetch(`${world.url}/reports/report.txt`)
  const permit = await held.promise
  await endSession(world)

  permit()

  assert.equal((await response).status, 401)
})

test('Another proxy gets no permission when the session ends while the decision is awaited', async (t) => {
  const point = await startDecisionPoint(t)
  const world = await startAskedWorld(t, { wiki: `authorize_with: { url: "${point.url}", timeout: 10s }` })
  const cookie = await world.signIn()
  const held = Promise.withResolvers<() => void>()
  point.answer = (req, res, evaluation) => held.resolve(() => decide({ decision: true })(req, res, evaluation))
  const response = world.ask([...world.described(), ['Cookie', cookie]])
  const permit = await held.promise
  await endSession(world)

  permit()

  assert.equal((await response).status, 401)
})

test('A form whose session ends while it is received gets 401, and the application nothing', async (t) => {
  const { url: upstream, received } = await startFormApplication(t)
  const upstreamSettings = `session_cookies: [APP]
    application_sign_in:
      page: /login
      fields: { user: "{username}", pass: "{password}" }
      password: { env: PHPMYADMIN_PASSWORD }`
  const world = await startWorld(t, { upstream, upstreamSettings })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const form = request(`${world.url}/orders`, {
    method: 'POST',
    headers: {
      ...{
        Cookie: [...jane.cookies].map(([name, { value }]) => `${name}=${value}`).join('; '),
        Expect: '100-continue',
        'Content-Length': 9,
      },
      ...{ 'Content-Type': 'application/x-www-form-urlencoded', 'Sec-Fetch-Mode': 'navigate', Accept: 'text/html' },
      ...{ 'Sec-Fetch-Site': 'same-origin', Origin: world.url },
    },
  })
  form.flushHeaders()
  await once(form, 'continue')
  await endSession(world)

  form.end('item=lamp')

  const [response] = (await once(form, 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 401)
  assert.deepEqual(received, [])
})

for (const [what, path] of [
  ['the application', '/echo'],
  ['a text of the gateway', '/text'],
] as const)
  test(`A request for ${what} gets 401 when its session reaches absolute_timeout while the decision is awaited`, async (t) => {
    const point = await startDecisionPoint(t)
    const { url: upstream, seen } = await startRecordingApplication(t)
    const upstreamSettings = `authorize_with: { url: "${point.url}", timeout: 10s }
    rules: [{ path: /text, respond: { status: 200, text: for Jane } }]`
    const session = 'absolute_timeout: 1h'
    const world = await startWorld(t, { upstream, upstreamSettings, session })
    const jane = world.browser()
    await jane.get(`${world.url}/`)
    seen.length = 0
    const held = Promise.withResolvers<() => void>()
    point.answer = (req, res, evaluation) => held.resolve(() => decide({ decision: true })(req, res, evaluation))
    const response = jane.fetch(`${world.url}${path}`)
    const permit = await held.promise
    world.moveClock(60 * 60_000)

    permit()

    assert.equal((await response).status, 401)
    assert.deepEqual(seen, [])
  })

test('Another proxy gets no permission when the session reaches absolute_timeout while the decision is awaited', async (t) => {
  const point = await startDecisionPoint(t)
  const wiki = `authorize_with: { url: "${point.url}", timeout: 10s }`
  const world = await startAskedWorld(t, { wiki, session: 'absolute_timeout: 1h' })
  const cookie = await world.signIn()
  const held = Promise.withResolvers<() => void>()
  point.answer = (req, res, evaluation) => held.resolve(() => decide({ decision: true })(req, res, evaluation))
  const response = world.ask([...world.described(), ['Cookie', cookie]])
  const permit = await held.promise
  world.moveClock(60 * 60_000)

  permit()

  assert.equal((await response).status, 401)
})
