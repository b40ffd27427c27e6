import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { SessionKey } from '../../src/core/names.ts'
import { Keyring } from '../../src/core/seal.ts'
import { LogoutJobs } from '../../src/session/live/logout-jobs.ts'
import { auditEventsIn } from '../support/audit-schema.ts'
import { press, submit } from '../support/form-browser.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { enter } from '../support/password-page.ts'
import { press as pressButton } from '../support/session-page.ts'
import { type Asking, startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

const form = 'page: /login, fields: { user: "{username}", pass: "{password}" }'
const json = 'action: /login, json: { user: "{username}", pass: "{password}" }, token: token'
/** The provider of the tests has no password, but the application may have any. */
const byClaim = 'password: { claim: email }'
const passwords = { jane: 'jane.doe@example.com', noa: 'noa.levi@example.com', zoe: 'zoe.mueller@example.com' }
const robot = 'username: { value: jane }, password: { env: PHPMYADMIN_PASSWORD }'
const minute = 60_000

async function worldWith(t: TestContext, settings: string, asking?: Asking, options: WorldOptions = {}) {
  const application = await startSigningInApplication(t, asking)
  for (const [name, password] of Object.entries(passwords)) application.passwords.set(name, password)
  const world = await startWorld(t, {
    upstream: application.url,
    upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { ${settings} }`,
    ...options,
  })
  return { application, world }
}

const audited = (world: World, name = 'application.sign_in') =>
  world.replicas
    .flatMap(({ log }) => auditEventsIn(log))
    .filter(({ message }) => message === name)
    .map(({ fields }) => fields['outcome'])

for (const [what, settings, asking] of [
  ['a redirect to the form', form, 'redirect'],
  ['a page that has the form', form, 'page'],
  ['a sign-in with JSON', json, 'json'],
  ['Basic', 'basic: true', 'basic'],
] as const)
  test(`Each person is signed in without seeing the form: ${what}`, async (t) => {
    const { application, world } = await worldWith(t, `${settings}, ${byClaim}`, asking)
    const jane = new JarBrowser('jane')

    const page = await jane.get(`${world.url}/orders?page=2`)

    assert.equal(page.status, 200, page.body)
    assert.equal(page.url, `${world.url}/orders?page=2`)
    assert.match(page.body, /Orders of jane/)
    assert.match((await jane.get(`${world.url}/other`)).body, /Orders of jane/)
    assert.deepEqual(audited(world), ['done'])
    assert.deepEqual(jane.places, [])
    if (asking !== 'basic') assert.equal(application.attempts.length, 1)

    const next = jane.handOver('noa')
    world.moveClock(31 * minute)
    assert.match((await next.get(`${world.url}/orders`)).body, /Orders of noa/)
  })

test('The form is sent like a browser sends it, to its own address only', async (t) => {
  const { application, world } = await worldWith(t, `${form}, ${byClaim}`)

  await new JarBrowser('jane').get(`${world.url}/orders?page=2`)

  const [attempt] = application.attempts
  const { token, ...fields } = Object.fromEntries(new URLSearchParams(attempt?.content))
  assert.match(String(token), /^[\w-]{36}$/)
  assert.deepEqual(fields, { user: 'jane', pass: passwords.jane, go: '1' })
  const { host, origin, referer, cookie, 'x-remote-user': identity } = attempt?.headers ?? {}
  assert.deepEqual([host, origin], [new URL(world.url).host, world.url])
  assert.equal(referer, `${world.url}/login?next=%2Forders%3Fpage%3D2`)
  assert.match(String(cookie), /^browser=[\w-]{36}$/)
  assert.equal(identity, 'jane')
  assert.equal(attempt?.headers['x-forwarded-for'], '127.0.0.1')
})

test('When the application has ended the session, the next request signs in again', async (t) => {
  const { application, world } = await worldWith(t, `${form}, ${byClaim}`)
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)

  application.endSessions()
  world.moveClock(2 * minute)

  assert.match((await jane.get(`${world.url}/orders`)).body, /Orders of jane/)
  assert.equal(application.attempts.length, 2)
})

for (const replicas of [1, 2])
  test(`Requests at the same time sign in once: ${replicas} replicas`, async (t) => {
    const { application, world } = await worldWith(t, `${form}, ${byClaim}`, 'redirect', {
      store: 'redis',
      replicas,
      upstreamSettings: `session_cookies: [APP, browser]
    rules: [{ path: /free/*, access: public }]
    application_sign_in: { ${form}, ${byClaim} }`,
    })
    const jane = world.browser()
    await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

    const urls = ['/a', '/b', '/c', '/d', '/e', '/f'].map((path, n) => `${world.replicas[n % replicas]?.url}${path}`)
    const host = { host: new URL(world.url).host }
    const pages = await Promise.all(urls.map((url) => jane.send(url, { headers: host })))

    for (const page of pages) assert.match(page.body, /Orders of jane/, `${page.url}: ${page.status}`)
    assert.equal(application.attempts.length, 1)
    assert.deepEqual(audited(world), ['done'])
  })

test('A script is signed in too, and a request that is not safe is not repeated', async (t) => {
  const { application, world } = await worldWith(t, `${form}, ${byClaim}`)
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const post = { method: 'POST', headers: { origin: world.url, 'content-type': 'application/json' }, body: '{}' }

  assert.equal((await jane.fetch(`${world.url}/api`, post)).status, 302)
  assert.equal(application.attempts.length, 0)
  assert.match((await jane.fetch(`${world.url}/api`)).body, /Orders of jane/)
  assert.equal((await jane.fetch(`${world.url}/api`, post)).status, 200)
})

test('A form that was being sent is kept, and sent once when the person says so', async (t) => {
  const { application, world } = await worldWith(t, `${form}, ${byClaim}`)
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  application.endSessions()
  world.moveClock(2 * minute)

  const kept = await submit(jane, world.url, { path: '/orders', body: 'item=Toner+%26+paper' })
  assert.equal(kept.status, 303)
  const question = await jane.get(new URL(String(kept.headers['location']), world.url).href)
  assert.match(question.body, /Do you want to send what you entered\?/)
  assert.deepEqual(application.saved, [])
  assert.match((await press(jane, question, 'Send now')).body, /Orders of jane/)

  assert.deepEqual(application.saved, [['jane', 'item=Toner+%26+paper']])
})

test('The session of the application ends with that of the person', async (t) => {
  const { application, world } = await worldWith(t, '', 'redirect', {
    upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { ${form}, ${byClaim} }
    logout: { call: /logout }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  const ended = new Promise<string>((resolve) => {
    application.respond = (req, res) => {
      if (req.url !== '/logout') return false
      resolve(String(req.headers.cookie))
      res.end()
      return true
    }
  })

  await jane.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST', headers: { origin: world.url } })

  assert.match(await ended, /\bAPP=/)
})

test('A person is asked once, and every later session is signed in without a question', async (t) => {
  const { application, world } = await worldWith(t, `${form}, remember: 30m`, 'redirect', { session: 'page: true' })
  const jane = world.browser()

  const page = await jane.get(`${world.url}/orders?page=2&x=a%26b`)
  assert.match(page.body, /Your password for orders \(127\.0\.0\.1:\d+\)/)
  assert.match(page.body, /<input id="username" [^>]* value="jane" readonly>/)
  assert.match(
    page.body,
    /is stored encrypted, is sent only to this application to sign you in, and is deleted in 30 minutes/,
  )
  const orders = await enter(jane, page, { password: passwords.jane })

  assert.equal(orders.url, `${world.url}/orders?page=2&x=a%26b`)
  assert.match(orders.body, /Orders of jane/)
  assert.match((await world.browser().get(`${world.url}/orders`)).body, /Orders of jane/)
  assert.equal(application.attempts.length, 2)
  assert.match((await world.browser('noa').get(`${world.url}/orders`)).body, /Your password for orders/)
  assert.deepEqual(audited(world, 'application.secret'), ['kept'])

  world.moveClock(30 * minute)
  assert.match((await world.browser().get(`${world.url}/orders`)).body, /Your password for orders/)
})

test('A wrong password is sent once, and leads to one more question', async (t) => {
  const { application, world } = await worldWith(t, form)
  const jane = world.browser()

  const again = await enter(jane, await jane.get(`${world.url}/orders`), { password: 'wrong' })

  assert.match(again.body, /The application has not accepted the password\. It was deleted\./)
  for (let times = 0; times < 3; times += 1)
    assert.match((await jane.get(`${world.url}/orders`)).body, /Your password for orders/)
  assert.equal(application.attempts.length, 1)
  assert.match((await enter(jane, again, { password: passwords.jane })).body, /Orders of jane/)
  assert.deepEqual(audited(world), ['refused', 'done'])
})

test('A person may use the form of the application, and enter another name', async (t) => {
  const { application, world } = await worldWith(t, `${form}, username: { ask: true }`)
  const jane = world.browser()
  const page = await jane.get(`${world.url}/orders`)

  assert.match((await enter(jane, page, { decline: '1' })).body, /<title>Sign in<\/title>/)
  assert.match((await jane.get(`${world.url}/orders`)).body, /<title>Sign in<\/title>/)
  assert.equal(application.attempts.length, 0)

  assert.match((await enter(jane, page, { username: 'noa', password: passwords.noa })).body, /Orders of noa/)
})

test('A form that meets the question is kept until the password is entered', async (t) => {
  const { application, world } = await worldWith(t, form)
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

  const sent = await submit(jane, world.url, { path: '/orders', body: 'item=1' })
  const page = await jane.get(new URL(String(sent.headers['location']), world.url).href)
  const first = await enter(jane, page, { password: passwords.jane })
  const second = await press(jane, first, 'Send now')
  const question = await jane.get(new URL(String(second.headers['location']), world.url).href)
  assert.match((await press(jane, question, 'Send now')).body, /Orders of jane/)

  assert.deepEqual(application.saved, [['jane', 'item=1']])
})

test('A person removes the password on the page with the sessions', async (t) => {
  const { world } = await worldWith(t, form, 'redirect', { session: 'page: true' })
  const jane = world.browser()
  await enter(jane, await jane.get(`${world.url}/orders`), { password: passwords.jane })

  const page = await jane.get(`${world.url}/.gatehouse/sessions`)
  const after = await pressButton(jane, page, /^Remove the password for orders \(127/)

  assert.equal(after.url, `${world.url}/.gatehouse/sessions`)
  assert.doesNotMatch(after.body, /Remove the password/)
  assert.match((await world.browser().get(`${world.url}/orders`)).body, /Your password for orders/)
  assert.deepEqual(audited(world, 'application.secret'), ['kept', 'removed'])
})

test('No page of another site enters a password, or leads elsewhere', async (t) => {
  const { world } = await worldWith(t, form, 'redirect', {
    upstreamSettings: `session_cookies: [APP]
    application_sign_in: { ${form} }
    logout: { paths: [/bye] }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  const post = (site: string, returnTo: string) =>
    jane.send(`${world.url}/.gatehouse/application-sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': site },
      body: new URLSearchParams({ upstream: 'orders', return_to: returnTo, decline: '1' }).toString(),
    })

  for (const site of ['cross-site', 'same-site', 'none']) assert.equal((await post(site, '/orders')).status, 403)
  for (const elsewhere of [
    '//evil.example/',
    '//evil.example//evil.example/',
    '/.//evil.example/',
    '/a/..//evil.example/',
    '/\\evil.example',
    'https://evil.example/',
    '/bye',
    '/.gatehouse/sign-out',
    'x',
  ])
    assert.equal((await post('same-origin', elsewhere)).headers['location'], '/', elsewhere)
  assert.equal((await post('same-origin', '/orders?a=1')).headers['location'], '/orders?a=1')
})

test('The wrong password of a technical account is sent once for all people', async (t) => {
  const { application, world } = await worldWith(t, `${form}, ${robot}`, 'redirect', { store: 'redis', replicas: 2 })

  for (const person of ['jane', 'noa', 'zoe']) {
    const page = await world.browser(person).get(`${world.url}/orders`)
    assert.match(page.body, /<title>Sign in<\/title>/)
  }

  assert.equal(application.attempts.length, 1)
  assert.deepEqual(audited(world), ['refused'])
})

test('The password of a technical account is in no log, header, page or URL', async (t) => {
  const { application, world } = await worldWith(t, `${form}, ${robot}`)
  const secret = 'a password that only the gateway knows'
  application.passwords.set('jane', secret)
  const seen: string[] = []
  application.respond = (req) => {
    if (req.method !== 'POST') seen.push(JSON.stringify([req.url, req.headers]))
    return false
  }

  const page = await world.browser('noa').get(`${world.url}/orders`)

  assert.match(page.body, /Orders of jane/)
  const logged = world.replicas.flatMap(({ log, access }) => [log, access])
  const places = JSON.stringify([page, logged, seen])
  for (const spelling of [
    secret,
    secret.replaceAll(' ', '+'),
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
  ])
    assert.ok(!places.includes(spelling), spelling)
})

test('The password that a person enters is in no log, header, page or URL', async (t) => {
  const { application, world } = await worldWith(t, form, 'redirect', { session: 'page: true' })
  const secret = 'a password & only jane knows it'
  application.passwords.set('jane', secret)
  const seen: string[] = []
  application.respond = (req) => {
    if (req.method !== 'POST') seen.push(JSON.stringify([req.url, req.headers]))
    return false
  }
  const jane = world.browser()

  const orders = await enter(jane, await jane.get(`${world.url}/orders`), { password: secret })
  const sessions = await jane.get(`${world.url}/.gatehouse/sessions`)

  assert.match(orders.body, /Orders of jane/)
  const places = JSON.stringify([orders, sessions, world.replicas.flatMap(({ log, access }) => [log, access]), seen])
  for (const spelling of [secret, encodeURIComponent(secret), secret.replaceAll(' ', '+').replace('&', '%26')])
    assert.ok(!places.includes(spelling), spelling)
})

test('The application gets the token of the gateway, and no Authorization of the browser', async (t) => {
  const { application, world } = await worldWith(t, `${json}, ${byClaim}`, 'json')
  const seen: (string | undefined)[] = []
  application.respond = (req) => {
    if (req.url === '/other') seen.push(req.headers.authorization)
    return false
  }
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)

  await jane.get(`${world.url}/other`, { headers: { authorization: 'Bearer of.somebody' } })

  assert.match(String(seen), /^Bearer of\.[\w-]{36}$/)
})

test('The session keeps the cookies of session_cookies only', async (t) => {
  const { application, world } = await worldWith(t, `${form}, ${byClaim}`)
  const seen: (string | undefined)[] = []
  application.respond = (req) => {
    if (req.url === '/other') seen.push(req.headers.cookie)
    return false
  }
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)

  await jane.get(`${world.url}/other`)

  assert.match(String(seen), /^browser=[\w-]{36}; APP=[\w-]{36}$/)
})

test('The logout jobs of a session have no credentials of an application', () => {
  const upstreams = [
    {
      name: 'orders',
      headers: [],
      rules: [],
      logout: { paths: [], passFirst: false, cookies: [], call: { method: 'POST', target: '/logout', timeoutMs: 1 } },
    },
  ] as const
  const jobs = new LogoutJobs({ keyring: new Keyring([Buffer.alloc(32)]), audience: 'audience', upstreams })
  const record = {
    ...{ iss: 'iss', sub: 'jane', created_at: 0, absolute_expires_at: 1, userinfo_read_at: 0, claims: {} },
    tokens: { access_token: 'a', id_token: 'i', obtained_at: 0 },
    cookies: { orders: [{ name: 'APP', value: '1', domain: 'example.com', path: '/' }] },
    application_sessions: { orders: { authorization: 'Basic secret' } },
  }
  const key = 'tag:hash' as SessionKey

  const sealed = jobs.sealedFor(key, record)

  assert.doesNotMatch(JSON.stringify(jobs.open(key, sealed as Buffer)), /Basic|application_sessions/)
})

test('A page whose scripts ask with 401 counts as a question, also when the password is gone', async (t) => {
  const { application, world } = await worldWith(t, `${json}, remember: 10m`, 'json')
  application.respond = (req, res) => {
    if (req.url !== '/') return false
    res.setHeader('Content-Type', 'text/html').end('<title>Editor</title>')
    return true
  }
  const jane = world.browser()

  assert.match((await enter(jane, await jane.get(`${world.url}/`), { password: passwords.jane })).body, /Editor/)
  assert.equal((await jane.fetch(`${world.url}/api`)).status, 200)
  assert.match((await jane.get(`${world.url}/`)).body, /Editor/)
  assert.equal(application.attempts.length, 1)

  world.moveClock(11 * minute)
  application.endSessions()
  assert.equal((await jane.fetch(`${world.url}/api`)).status, 401)
  assert.match((await jane.get(`${world.url}/`)).body, /Your password for orders/)
})

test('A script is not asked for a password: it gets the response of the application', async (t) => {
  const { world } = await worldWith(t, form)
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)

  const { status, headers } = await jane.fetch(`${world.url}/api`)

  assert.deepEqual([status, headers['location']], [302, '/login?next=%2Fapi'])
})
