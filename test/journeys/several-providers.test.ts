import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { openAdministration } from '../../src/admin/administration.ts'
import { loadConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/core/clock.ts'
import { Browser } from '../support/browser.ts'
import { startFormApplication } from '../support/form-application.ts'
import { goOn, press, submit } from '../support/form-browser.ts'
import { replacePauses } from '../support/pauses.ts'
import {
  headersOf,
  isSignedIn,
  linksOf,
  seen,
  separate,
  shared,
  signInAt,
  twoProviders,
} from '../support/two-providers.ts'
import { secrets } from '../support/world.ts'

test('One browser has a session at each of two providers, and each application gets its own person', async (t) => {
  const { url, staff, partners } = await twoProviders(t, { upstreams: separate })
  const jane = new Browser('jane')

  assert.deepEqual(seen(await jane.get(`${url}/staff/echo`)), ['jane', staff.issuer])
  assert.equal(await isSignedIn(jane, `${url}/partners/echo`), false)
  assert.deepEqual(seen(await jane.get(`${url}/partners/echo`)), ['jane', partners.issuer])
  assert.deepEqual(seen(await jane.send(`${url}/staff/echo`)), ['jane', staff.issuer])
})

test('A person chooses between the providers of an application, and the browser remembers the choice', async (t) => {
  const { url, partners, replicas } = await twoProviders(t, { upstreams: shared })
  const jane = new Browser('jane')

  const choice = await jane.get(`${url}/echo?order=7`)
  assert.equal(choice.status, 200)
  assert.match(choice.body, />Staff</)
  assert.match(choice.body, />Partners &amp; guests</)
  // Neither comes first.
  assert.equal(choice.body.match(/<a class="first"/g)?.length, 2)
  const page = await signInAt(jane, 'partners', `${url}/echo?order=7`)
  assert.deepEqual([page.url, ...seen(page)], [`${url}/echo?order=7`, 'jane', partners.issuer])

  jane.cookies.delete('gatehouse-at-partners')
  assert.deepEqual(seen(await jane.get(`${url}/echo`)), ['jane', partners.issuer])
  assert.equal(partners.hits('/oauth/token'), 2)
  assert.equal(replicas.length, 1)
})

test('At another host, the page names the right address before a person chooses a provider', async (t) => {
  const { url } = await twoProviders(t, { upstreams: shared })

  const page = await new Browser('jane').get(`${url.replace('127.0.0.1', 'localhost')}/echo?order=7`)

  assert.equal(page.status, 421)
  assert.ok(page.body.includes(`href="${url}/echo?order=7"`), page.body)
  // The address of another site is never the right one.
  const away = await new Browser('jane').send(`${url}/.gatehouse/sign-in?return_to=https://evil.example/`, {
    headers: { host: 'localhost' },
  })
  assert.equal(away.status, 421)
  assert.equal(away.body.includes('evil.example'), false)
})

test('After a sign-out, the person chooses again', async (t) => {
  const { url } = await twoProviders(t, { upstreams: shared })
  const jane = new Browser('jane')
  await signInAt(jane, 'partners', `${url}/echo`)

  await jane.get(`${url}/.gatehouse/sign-out`, { headers: { 'sec-fetch-site': 'same-origin' } })

  assert.equal(await isSignedIn(jane, `${url}/echo`), false)
  assert.equal(linksOf(await jane.get(`${url}/echo`)).length, 2)
})

test('A choice that fails is not remembered', async (t) => {
  const { url, partners } = await twoProviders(t, { upstreams: shared })
  const jane = new Browser('jane')
  await signInAt(jane, 'partners', `${url}/echo`)
  jane.cookies.delete('gatehouse-at-partners')
  partners.fault('/oauth/token', (_req, res) => void res.writeHead(500).end())

  assert.notEqual((await jane.get(`${url}/echo`)).status, 200)

  assert.equal(linksOf(await jane.get(`${url}/echo`)).length, 2)
})

test('A person whose last provider is away chooses again', async (t) => {
  const { url, staff, partners } = await twoProviders(t, { upstreams: shared, partnersStartDown: true })
  const jane = new Browser('jane')
  jane.cookies.set('gatehouse-provider', { value: 'partners', path: '/' })

  assert.equal((await jane.get(`${url}/echo`)).status, 503)
  assert.deepEqual(seen(await signInAt(jane, 'staff', `${url}/echo`)), ['jane', staff.issuer])
  assert.equal(partners.hits('/oauth/token'), 0)
})

test('The sign-in of another person at the other provider ends the session of the first person', async (t) => {
  const { url, partners } = await twoProviders(t, { upstreams: shared })
  const browser = new Browser('jane')
  await signInAt(browser, 'staff', `${url}/echo`)
  const ofStaff = browser.cookies.get('gatehouse-at-staff')

  const other = await browser.get(`${url}/.gatehouse/partners/sign-in?return_to=/echo`)

  assert.deepEqual(seen(other), ['jane', partners.issuer])
  assert.deepEqual(seen(await browser.send(`${url}/echo`)), ['jane', partners.issuer])
  const thief = new Browser('mallory')
  if (ofStaff !== undefined) thief.cookies.set('gatehouse-at-staff', ofStaff)
  assert.equal(await isSignedIn(thief, `${url}/echo`), false)
})

test('A session at one provider is none at the other, even in the cookie of the other', async (t) => {
  const { url } = await twoProviders(t, { upstreams: separate })
  const jane = new Browser('jane')
  await jane.get(`${url}/staff/echo`)
  const session = jane.cookies.get('gatehouse-at-staff')
  assert.ok(session)

  const mallory = new Browser('mallory')
  mallory.cookies.set('gatehouse-at-partners', session)

  assert.equal(await isSignedIn(mallory, `${url}/partners/echo`), false)
  const described = await mallory.fetch(`${url}/.gatehouse/partners/session`)
  assert.equal(described.status, 401)
  assert.equal(await isSignedIn(jane, `${url}/staff/echo`), true)
})

for (const replicas of [1, 2])
  test(`A Logout Token ends the sessions of its own provider only, with ${replicas} of ${replicas} replicas`, async (t) => {
    const world = await twoProviders(t, { upstreams: separate, replicas })
    const { url, staff } = world
    const jane = new Browser('jane')
    await jane.get(`${url}/staff/echo`)
    await jane.get(`${url}/partners/echo`)
    const at = world.replicas.at(-1)?.url ?? url
    const post = (name: string, logout_token: string) =>
      fetch(`${at}/.gatehouse/${name}/backchannel-logout`, {
        method: 'POST',
        body: new URLSearchParams({ logout_token }),
      })
    const token = await staff.logoutToken({ sub: 'jane' })

    const elsewhere = await post('partners', token)
    assert.equal(elsewhere.status, 400)
    assert.equal(await isSignedIn(jane, `${url}/staff/echo`), true)
    assert.equal((await post('staff', token)).status, 200)

    assert.equal(await isSignedIn(jane, `${url}/staff/echo`), false)
    assert.equal(await isSignedIn(jane, `${url}/partners/echo`), true)
  })

test('A code of one provider is never sent to the other one', async (t) => {
  const { url, staff, partners } = await twoProviders(t, { upstreams: separate })
  const jane = new Browser('jane')
  const back = await jane.until(`${url}/partners/echo`, '/.gatehouse/partners/callback')

  const mixedUp = await jane.send(back.replace('/partners/callback', '/staff/callback'))

  assert.notEqual(mixedUp.status, 303)
  assert.equal(staff.hits('/oauth/token'), 0)
  assert.equal((await jane.get(back)).status, 200)
  assert.equal(partners.hits('/oauth/token'), 1)
})

test('The endpoints of a provider exist below its name only', async (t) => {
  const { url } = await twoProviders(t, { upstreams: shared })

  for (const [method, path, status] of [
    ['POST', 'backchannel-logout', 404],
    ['GET', 'callback', 404],
    ['POST', 'staff/backchannel-logout', 400],
    ['GET', 'others/sign-in', 404],
    ['GET', 'staff/session.js', 404],
    ['GET', 'session.js', 200],
  ] as const)
    assert.equal((await fetch(`${url}/.gatehouse/${path}`, { method })).status, status, `${method} ${path}`)
})

test('A short name of a claim means another claim at each provider', async (t) => {
  const { url } = await twoProviders(t, { upstreams: shared })
  const partner = await signInAt(new Browser('jane'), 'partners', `${url}/echo`)
  const colleague = await signInAt(new Browser('jane'), 'staff', `${url}/echo`)

  assert.match(String(headersOf(partner).get('X-Mail')), /^jane.*@/)
  assert.equal(headersOf(colleague).get('X-Mail'), undefined)
})

test('A provider that is away does not disturb the people of the other one', async (t) => {
  const options = { upstreams: separate, partnersStartDown: true }
  const { url, staff, partners, moveClock } = await twoProviders(t, options)
  const jane = new Browser('jane')

  assert.deepEqual(seen(await jane.get(`${url}/staff/echo`)), ['jane', staff.issuer])
  assert.equal((await jane.get(`${url}/partners/echo`)).status, 503)
  await partners.up()
  moveClock(1_000)
  assert.equal((await jane.get(`${url}/partners/echo`)).status, 200)
})

test('A form that met an ended session waits until its person has signed in at the same provider', async (t) => {
  const application = await startFormApplication(t)
  const options = { upstreams: shared, application: application.url, session: 'idle_timeout: 1m' }
  const { url, moveClock, partners } = await twoProviders(t, options)
  const jane = new Browser('jane')
  await signInAt(jane, 'partners', `${url}/forms`)
  moveClock(61_000)

  const page = await goOn(jane, await submit(jane, url))
  assert.equal(new URL(page.url).pathname, '/.gatehouse/partners/kept-request')
  assert.equal((await press(jane, page, 'Send now')).status, 200)

  assert.equal(application.received.length, 1)
  assert.equal(partners.hits('/oauth/token'), 2)
})

test('Another account may be one at the other provider', async (t) => {
  const { url } = await twoProviders(t, { upstreams: shared })
  const jane = new Browser('jane')
  await signInAt(jane, 'staff', `${url}/echo`)

  const page = await jane.get(`${url}/.gatehouse/sign-out?then=sign-in&return_to=/echo`, {
    headers: { 'sec-fetch-site': 'same-origin' },
  })

  assert.deepEqual(
    linksOf(page).map((link) => new URL(link).pathname),
    ['/.gatehouse/staff/sign-in', '/.gatehouse/partners/sign-in'],
  )
})

test('A reload that adds a provider keeps the sessions at the others', async (t) => {
  replacePauses(t, { waitForDependenciesMs: 300 })
  const { url, replicas } = await twoProviders(t, { upstreams: separate })
  const jane = new Browser('jane')
  await jane.get(`${url}/staff/echo`)
  const [replica] = replicas
  assert.ok(replica)
  const text = readFileSync(replica.file, 'utf8')
  const guests = `  guests: { issuer: https://guests.invalid, client_id: orders, client_secret: { env: CLIENT_SECRET } }`
  writeFileSync(replica.file, text.replace('\nproviders:\n', `\nproviders:\n${guests}\n`))
  const loaded = loadConfig(replica.file, secrets)
  assert.ok(loaded.ok)

  await replica.gateway.reload(loaded.config)

  assert.equal(await isSignedIn(jane, `${url}/staff/echo`), true)
})

test('The logout link of an application signs out of its own provider only', async (t) => {
  const { url } = await twoProviders(t, { upstreams: separate })
  const jane = new Browser('jane')
  await jane.get(`${url}/staff/echo`)
  await jane.get(`${url}/partners/echo`)

  await jane.get(`${url}/partners/logout`, { headers: { 'sec-fetch-site': 'same-origin' } })

  assert.equal(await isSignedIn(jane, `${url}/partners/echo`), false)
  assert.equal(await isSignedIn(jane, `${url}/staff/echo`), true)
})

test('A script learns who is signed in for the application of its page', async (t) => {
  const { url } = await twoProviders(t, { upstreams: separate })
  const jane = new Browser('jane')
  await jane.get(`${url}/staff/echo`)
  await jane.get(`${url}/partners/echo`)
  const sessionFor = async (page: string) => {
    const visit = await jane.fetch(`${url}/.gatehouse/session`, { headers: { referer: `${url}${page}` } })
    return (JSON.parse(visit.body) as { signed_in_at: string }).signed_in_at
  }

  const [staff, partners] = [await sessionFor('/staff/a'), await sessionFor('/partners/b')]

  assert.notEqual(staff, undefined)
  assert.notEqual(staff, partners)
})

test('An administrator sees at which provider each person is signed in, and ends sessions at all of them', async (t) => {
  const { url, replicas, staff, partners } = await twoProviders(t, { upstreams: separate, replicas: 2 })
  const jane = new Browser('jane')
  await jane.get(`${url}/staff/echo`)
  await jane.get(`${url}/partners/echo`)
  const loaded = loadConfig(String(replicas[0]?.file), secrets)
  assert.ok(loaded.ok)
  const log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
  const administration = await openAdministration(loaded.config, { log, clock: systemClock })
  t.after(() => administration.close())

  const listed: (string | undefined)[] = []
  for await (const { provider } of administration.list({ sub: 'jane' })) listed.push(provider)
  const outcome = await administration.end({ sub: 'jane' })

  assert.deepEqual(listed.toSorted(), ['partners', 'staff'])
  assert.deepEqual([outcome.ended, outcome.atProvider], [2, { ended: 2 }])
  assert.equal(await isSignedIn(jane, `${url}/staff/echo`), false)
  assert.equal(await isSignedIn(jane, `${url}/partners/echo`), false)
  assert.deepEqual([staff.sessions().length, partners.sessions().length], [0, 0])
})

test('The reason of a failed sign-in names the settings of its provider', async (t) => {
  const { url, staff, replicas } = await twoProviders(t, { upstreams: separate })
  staff.fault('/oauth/token', (_req, res) => {
    res.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}')
  })

  await new Browser('jane').get(`${url}/staff/`)

  const failed = replicas[0]?.log.find(({ message }) => message === 'sign_in.failed')
  assert.match(String(failed?.fields['reason']), /check providers\.staff\.client_id/)
})
