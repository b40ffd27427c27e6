import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { demoPeople } from '../../examples/demo/people.ts'
import { enter } from '../support/password-page.ts'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld, type WorldOptions } from '../support/world.ts'

// What people do with the page that asks for the password of an application.

async function start(t: TestContext, more = '', options: WorldOptions = {}) {
  const application = await startSigningInApplication(t)
  const upstreamSettings = `session_cookies: [APP, browser]
    application_sign_in: { page: /login, fields: { user: "{username}", pass: "{password}" }${more} }`
  const world = await startWorld(t, { upstream: application.url, upstreamSettings, ...options })
  return { application, world, jane: world.browser() }
}

for (const [what, password] of [
  ['one character', 'x'],
  ['1,024 characters', 'ä'.repeat(1024)],
  ['control characters', 'a\0b\r\nX: y\x1b'],
  ['characters of forms and of templates', '&pass=x+%41{username}$&'],
] as const)
  test(`A password reaches the application unchanged: ${what}`, async (t) => {
    const { application, world, jane } = await start(t)
    application.passwords.set('jane', password)

    const orders = await enter(jane, await jane.get(`${world.url}/orders`), { password })

    assert.match(orders.body, /Orders of jane/)
    assert.equal(new URLSearchParams(application.attempts[0]?.content).get('pass'), password)
  })

for (const length of [0, 1025, 10_000])
  test(`A password of ${length} characters is not kept: the page asks again`, async (t) => {
    const { application, world, jane } = await start(t)

    const again = await enter(jane, await jane.get(`${world.url}/orders`), { password: 'x'.repeat(length) })

    assert.match(again.body, /Your password for orders/)
    assert.deepEqual(application.attempts, [])
  })

test('A name with characters of HTML is shown and sent unchanged', async (t) => {
  const email = `a&b"<i>'&quot;`
  const people = demoPeople.map((person) => (person.sub === 'jane' ? { ...person, email } : person))
  const { application, world, jane } = await start(t, ', username: { claim: email }', { provider: { people } })
  application.passwords.set(email, 'right')
  const page = await jane.get(`${world.url}/orders`)

  await enter(jane, page, { password: 'right' })

  assert.ok(page.body.includes('value="a&amp;b&quot;&lt;i&gt;&#39;&amp;quot;" readonly>'))
  assert.equal(new URLSearchParams(application.attempts[0]?.content).get('user'), email)
})

test('A page that is sent after the sign-out keeps no password', async (t) => {
  const { application, world, jane } = await start(t)
  const page = await jane.get(`${world.url}/orders`)
  await jane.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST', headers: { origin: world.url } })

  const next = await enter(jane, page, { password: 'the password of jane' })

  assert.equal(page.headers['cache-control'], 'no-store')
  assert.match(next.body, /Your password for orders/)
  assert.deepEqual(application.attempts, [])
})

test('Two tabs that enter a password at once are signed in once', async (t) => {
  const { application, world, jane } = await start(t)
  const pages = [await jane.get(`${world.url}/orders?tab=1`), await jane.get(`${world.url}/orders?tab=2`)]

  const shown = await Promise.all(pages.map((page) => enter(jane, page, { password: 'the password of jane' })))

  assert.deepEqual(
    shown.map(({ url, body }) => [url, /Orders of jane/.test(body)]),
    [1, 2].map((tab) => [`${world.url}/orders?tab=${tab}`, true]),
  )
  assert.equal(application.attempts.length, 1)
})

test('An application that answers its form without end gets the password once, and its form is shown', async (t) => {
  const { application, world, jane } = await start(t)
  let posts = 0
  application.respond = (req, res) => {
    if (req.method !== 'POST') return false
    posts += 1
    res.writeHead(200, { 'Content-Type': 'text/html' })
    const more = () => {
      while (!res.destroyed && res.write('x'.repeat(16_384)));
    }
    res.on('drain', more)
    more()
    return true
  }

  const shown = await enter(jane, await jane.get(`${world.url}/orders`), { password: 'x' })

  assert.match(shown.body, /<title>Sign in<\/title>/)
  assert.match((await jane.get(`${world.url}/orders`)).body, /<title>Sign in<\/title>/)
  assert.equal(posts, 1)
})
