import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault } from '../support/provider.ts'
import { startWorld } from '../support/world.ts'

const metadata = '/.well-known/openid-configuration'

for (const [what, response] of [
  ['is another one than was configured', (_req, res) => res.end('{"issuer":"https://id.example.com"}')],
  ['fails', (_req, res) => res.writeHead(500).end()],
  ['answers with a page', (_req, res) => res.end('<html></html>')],
] satisfies readonly (readonly [string, Fault])[])
  test(`while the provider ${what}, a sign-in shows a page that asks to try again, and it works later`, async (t) => {
    const world = await startWorld(t, { providerStartsDown: true })
    const jane = world.browser()
    const mend = world.provider.fault(metadata, response)
    await world.provider.up()
    world.moveClock(1_000)

    const page = await jane.get(`${world.url}/echo`)
    mend()
    world.moveClock(1_000)
    const later = await jane.get(page.url)

    assert.equal(page.status, 503)
    assert.ok(page.headers['retry-after'])
    assert.match(String(page.headers['content-type']), /^text\/html/)
    assert.ok(!page.body.includes(world.provider.issuer), 'what is wrong is for the log')
    assert.deepEqual([later.status, later.url], [200, `${world.url}/echo`])
  })

test('a script gets the same as a problem document', async (t) => {
  const world = await startWorld(t, { providerStartsDown: true })

  const response = await world.browser().send(`${world.url}/.gatehouse/sign-in`, {
    headers: { accept: '*/*', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
  })

  assert.notEqual(response.status, 200)
  assert.match(String(response.headers['content-type']), /^application\/problem\+json/)
})

test('in an outage of the provider, signed-in people continue, and a sign-in uses the known metadata', async (t) => {
  const world = await startWorld(t)
  const [jane, samir] = [world.browser('jane'), world.browser('samir')]
  await jane.get(`${world.url}/echo`)
  await world.provider.down()

  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  const redirect = await samir.send(`${world.url}/.gatehouse/sign-in`)

  assert.equal(redirect.status, 303)
  assert.ok(String(redirect.headers['location']).startsWith(`${world.provider.issuer}/oauth/authorize?`))
})

test('a signed-in person is not redirected to the provider again', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const redirect = await jane.send(`${world.url}/.gatehouse/sign-in?return_to=/echo%3Fpage=2`)

  assert.deepEqual([redirect.status, redirect.headers['location']], [303, '/echo?page=2'])
})

test('a repeated return_to is ignored', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const redirect = await jane.send(`${world.url}/.gatehouse/sign-in?return_to=/a&return_to=/b`)

  assert.equal(redirect.headers['location'], '/')
})
