import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readForm } from '../corpus/hostile-provider.ts'
import { application, startHostileWorld } from '../corpus/hostile-world.ts'
import { startChromium } from '../support/chromium.ts'
import { basicModules, runModule } from './basic-modules.ts'

const settings = 'response_mode: form_post'
const chromium = await startChromium()

// oidcc-client-formpost-basic-certification-test-plan: the modules of the basic plan with
// response_mode=form_post, and one more.
for (const module of basicModules)
  test(`${module.name}, form_post`, async (t) => {
    const { provider } = await runModule(t, module, settings)
    assert.equal(provider.asked['response_mode'], 'form_post')
  })

test('oidcc-client-test-form-post-error', async (t) => {
  const bends = { authz: { error: 'login_required' } }
  const world = await startHostileWorld(t, {
    bends,
    settings: 'response_mode: form_post\n  authorization_params: { prompt: none, max_age: "0" }',
  })
  const alice = world.browser()

  const { status, body } = await world.signIn(alice)

  assert.deepEqual([world.provider.asked['prompt'], world.provider.asked['max_age']], ['none', '0'])
  assert.equal(status, 403)
  assert.match(body, /You are not signed in\./)
  assert.equal(await world.isSignedIn(alice), false)
})

test('A browser posts the form from a page of another site and is signed in, and no address holds the code', async (t) => {
  const world = await startHostileWorld(t, { settings, host: 'localhost' })
  const page = await (await chromium.person(t)).tab()
  const addresses: string[] = []
  page.on('request', (request) => addresses.push(request.url()))

  await page.goto(world.url + application)
  await page.getByText('this is the application').waitFor()

  const code = world.provider.lastTokenRequest?.form.get('code') ?? ''
  assert.notEqual(code, '')
  assert.deepEqual(
    addresses.filter((address) => address.includes(code)),
    [],
  )
  assert.deepEqual(world.provider.violations, [])
})

test('With form_post, an authorization response in the address is rejected', async (t) => {
  const world = await startHostileWorld(t, { settings, bends: { authz: { asQuery: true } } })
  const alice = world.browser()

  const { status } = await world.signIn(alice)

  assert.equal(status, 400)
  assert.equal(await world.isSignedIn(alice), false)
  assert.equal(world.provider.hits('token'), 0)
})

test('A posted authorization response is valid once, in the browser that began the sign-in', async (t) => {
  const world = await startHostileWorld(t, { settings })
  const [alice, mallory] = [world.browser(), world.browser()]
  const start = await alice.send(`${world.url}/.gatehouse/sign-in`)
  const { body } = await alice.send(String(start.headers['location']))
  const form = readForm(body)
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const posted = await mallory.send(form.action, { method: 'POST', headers, body: form.body })
  const callback = new URL(String(posted.headers['location']), world.url).href

  await mallory.send(callback)
  assert.equal(await world.isSignedIn(mallory), false)
  await alice.send(callback)
  assert.equal(await world.isSignedIn(alice), true)
  const later = world.browser()
  await later.send(callback)
  assert.equal(await world.isSignedIn(later), false)
  assert.equal(world.provider.hits('token_code'), 1)
})

for (const [what, sealed] of [
  ['invented', 'AAAA'],
  ['empty', ''],
  ['given twice', 'AAAA&response=AAAA'],
] as const)
  test(`A sealed response that is ${what} is rejected`, async (t) => {
    const world = await startHostileWorld(t, { settings })
    const { status } = await world.browser().send(`${world.url}/.gatehouse/callback?response=${sealed}`)
    assert.equal(status, 400)
  })

test('A response that is longer than an address can be is rejected', async (t) => {
  const world = await startHostileWorld(t, { settings })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const body = `code=${'c'.repeat(9_000)}`
  const { status } = await world.browser().send(`${world.url}/.gatehouse/callback`, { method: 'POST', headers, body })
  assert.equal(status, 502)
})

test('Without form_post, the callback accepts no POST', async (t) => {
  const world = await startHostileWorld(t)
  const { status, headers } = await world
    .browser()
    .send(`${world.url}/.gatehouse/callback`, { method: 'POST', body: 'a=b' })
  assert.deepEqual([status, headers['allow']], [405, 'GET'])
})
