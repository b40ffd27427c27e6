import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Browser, type Visit } from '../support/browser.ts'
import { formsOf, press, sendForm } from '../support/session-page.ts'
import { separate, twoProviders } from '../support/two-providers.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

const agents = {
  firefox: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0',
  safari:
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
}

async function signedIn(world: World, userAgent?: string, person = 'jane'): Promise<Browser> {
  const browser = world.browser(person)
  browser.userAgent = userAgent
  assert.equal((await browser.get(`${world.url}/echo`)).status, 200)
  return browser
}

const pageOf = ({ url }: { readonly url: string }) => `${url}/.gatehouse/sessions`
const isSignedIn = async (browser: Browser, { url }: World) => (await browser.fetch(`${url}/echo`)).status === 200
const headings = ({ body }: Visit) => [...body.matchAll(/<h2>([^<]*)/g)].map(([, text = '']) => text.trim())

test('Without session.page there is no such page', async (t) => {
  const world = await startWorld(t)
  const jane = await signedIn(world)

  for (const method of ['GET', 'POST']) {
    const [page, unknown] = [
      await jane.send(pageOf(world), { method }),
      await jane.send(`${world.url}/.gatehouse/unknown`, { method }),
    ]
    const withoutId = ({ body }: Visit) => body.replace(/Request ID [\w-]+/, '')
    assert.deepEqual([page.status, withoutId(page)], [404, withoutId(unknown)])
  }
})

for (const store of ['memory', 'redis'] as const)
  test(`${store}: A person sees where they are signed in, and ends a session`, async (t) => {
    const world = await startWorld(t, { store, session: 'page: true' })
    const [here, phone] = [await signedIn(world, agents.firefox), await signedIn(world, agents.safari)]
    const samir = await signedIn(world, undefined, 'samir')

    const page = await here.get(pageOf(world))

    assert.equal(page.status, 200)
    assert.deepEqual(headings(page), ['Firefox 140 on Windows', 'Safari 18 on iPhone'])
    assert.match(page.body, /<h2>Firefox 140 on Windows <span class="badge">This browser<\/span><\/h2>[^]*<h2>Safari/)
    assert.match(page.body, /<dd>127\.0\.0\.1<\/dd>/)
    assert.match(page.body, /<time datetime="[\dT:.-]+Z">/)
    const british = await here.get(pageOf(world), { headers: { 'accept-language': 'en-GB,en;q=0.9' } })
    assert.match(british.body, /<time datetime="[\dT:.-]+Z">\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC</)
    assert.equal(page.headers['cache-control'], 'no-store')

    const after = await press(here, page, /^End the session of Safari 18 on iPhone$/)

    assert.match(after.body, /<p class="outcome" role="status" tabindex="-1" autofocus>The session has ended\.<\/p>/)
    assert.deepEqual(headings(after), ['Firefox 140 on Windows'])
    assert.deepEqual(
      [await isSignedIn(here, world), await isSignedIn(phone, world), await isSignedIn(samir, world)],
      [true, false, true],
    )
    await until('the session at the provider ends too', () => world.provider.sessions().length === 2)
    assert.match((await press(here, page, /^End the session of Safari/)).body, /This session had already ended\./)
  })

test('The page is about one person, and its forms work in one browser only', async (t) => {
  const world = await startWorld(t, { session: 'page: true' })
  const [here, other] = [await signedIn(world, agents.firefox), await signedIn(world, agents.safari)]
  const samir = await signedIn(world, undefined, 'samir')
  const page = await here.get(pageOf(world))
  const [end, others] = formsOf(page).filter(({ fields }) => 'session' in fields)
  assert.ok(end && others)

  const key = String(world.replicas[0]?.log.find(({ fields }) => fields['sub'] === 'jane')?.fields['session'])
  const byOther = await sendForm(samir, end)
  const byKey = await sendForm(samir, { ...end, fields: { session: key } })
  const unknown = await sendForm(samir, { ...end, fields: { session: 'x' } })
  const ofOwnBrowser = await sendForm(other, others)

  for (const { status, body } of [byOther, byKey, unknown, ofOwnBrowser]) {
    assert.equal(status, 200)
    assert.match(body, /This session had already ended\./)
  }
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }])
    assert.equal((await sendForm(here, end, headers)).status, 403)
  await here.get(`${pageOf(world)}?session=${end.fields['session']}`)
  for (const browser of [here, other, samir]) assert.equal(await isSignedIn(browser, world), true)

  const ended = await press(here, page, /^End all other sessions$/)
  assert.match(ended.body, /The session has ended\./)
  assert.deepEqual([await isSignedIn(here, world), await isSignedIn(other, world)], [true, false])
})

test('Without a session the person signs in first, and ending the own session is a sign-out', async (t) => {
  const world = await startWorld(t, { session: 'page: true' })
  const jane = world.browser()

  const page = await jane.get(pageOf(world))

  assert.deepEqual([page.status, page.url], [200, pageOf(world)])
  assert.deepEqual(headings(page), ['Unknown browser'])
  assert.ok(page.body.includes('Sign out</button>'))
  const signedOut = await press(jane, page, /^Sign out$/)
  assert.equal(await isSignedIn(jane, world), false, signedOut.body)
})

test('What a client sends as User-Agent is text in the page, on one line and not long', async (t) => {
  const world = await startWorld(t, { session: 'page: true' })
  const jane = await signedIn(world, '<img/src=x onerror=alert(1)>"\'')
  const long = await signedIn(world, `${'a'.repeat(6_000)}/1 <b>\t\u0085`)

  const { body } = await jane.get(pageOf(world))

  assert.doesNotMatch(body, /<img|<b>|a{100}/)
  assert.equal(await isSignedIn(long, world), true)
})

test('The page shows fifty sessions, and says that there are more', async (t) => {
  const world = await startWorld(t, { session: 'page: true' })
  const browsers = await Promise.all(Array.from({ length: 52 }, () => signedIn(world)))

  const page = await (browsers[0] as Browser).get(pageOf(world))

  assert.equal(headings(page).length, 50)
  assert.match(page.body, /<li><h2>Unknown browser <span class="badge">This browser/)
  assert.match(page.body, /There are more sessions than these\./)
  assert.match((await press(browsers[0] as Browser, page, /^End all other/)).body, /The other sessions have ended\./)
  const left = await Promise.all(browsers.map((browser) => isSignedIn(browser, world)))
  assert.equal(left.filter(Boolean).length, 1)
})

for (const [language, title, button] of [
  ['de', 'Ihre Sitzungen', 'Sitzung von Safari 18 unter iPhone beenden'],
  ['fr', 'Vos sessions', 'Fermer la session de Safari 18 sous iPhone'],
  ['ja', 'セッションの一覧', 'Safari 18（iPhone） のセッションを終了する'],
] as const)
  test(`The page speaks the language of the browser: ${language}`, async (t) => {
    const world = await startWorld(t, { session: 'page: true' })
    const [here] = [await signedIn(world, agents.firefox), await signedIn(world, agents.safari)]

    const { body } = await here.get(pageOf(world), { headers: { 'accept-language': language } })

    assert.ok(body.includes(`<h1>${title}</h1>`), body)
    assert.ok(body.includes(` aria-label="${button}"`), body)
  })

test('With two providers, the page has the sessions of the same provider only', async (t) => {
  const { url } = await twoProviders(t, { session: 'page: true', upstreams: separate })
  const [here, there] = [new Browser('jane'), new Browser('jane')]
  here.userAgent = agents.firefox
  there.userAgent = agents.safari
  for (const path of ['staff', 'partners']) assert.equal((await here.get(`${url}/${path}/echo`)).status, 200)
  assert.equal((await there.get(`${url}/staff/echo`)).status, 200)

  const staff = await here.get(`${url}/.gatehouse/staff/sessions`)
  const partners = await here.get(`${url}/.gatehouse/partners/sessions`)

  assert.deepEqual(headings(staff), ['Firefox 140 on Windows', 'Safari 18 on iPhone'])
  assert.deepEqual(headings(partners), ['Firefox 140 on Windows'])
  const after = await there.get(`${url}/.gatehouse/partners/sessions`)
  assert.equal(after.url, `${url}/.gatehouse/partners/sessions`)
  assert.deepEqual(headings(after), ['Safari 18 on iPhone', 'Firefox 140 on Windows'])
})
