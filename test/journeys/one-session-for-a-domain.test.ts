import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAdministration } from '../../src/admin/administration.ts'
import { loadConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/core/clock.ts'
import { siteDomain } from '../support/certificates.ts'
import type { JarBrowser } from '../support/jar-browser.ts'
import { press } from '../support/session-page.ts'
import { startSite, type SiteWorld } from '../support/site.ts'
import { headersOf, linksOf } from '../support/two-providers.ts'
import { secrets } from '../support/world.ts'

const fromThisSite = { headers: { 'sec-fetch-site': 'same-origin' } }

/** The gateway's cookies in a browser, with `Domain` or the host. */
function gatewayCookies({ kept }: JarBrowser): readonly string[] {
  return kept
    .filter(({ name }) => name.includes('gatehouse'))
    .map(({ name, domain, hostOnly }) => `${name} ${hostOnly ? 'at' : 'below'} ${domain}`)
    .toSorted()
}

/** The session cookies among them. */
function sessionCookies(browser: JarBrowser): readonly string[] {
  return gatewayCookies(browser).filter((text) => /^__(?:Host|Secure)-gatehouse(?:-at-[a-z]+)? /.test(text))
}

const sessionCookie = `__Secure-gatehouse below ${siteDomain}`

async function isSignedIn(browser: JarBrowser, { url }: SiteWorld, host: string): Promise<boolean> {
  return (await browser.fetch(url(host, '/echo'))).status === 200
}

test('A person signs in once for all hosts of a domain', async (t) => {
  const site = await startSite(t)
  const jane = site.browser()

  const wiki = await jane.get(site.url('wiki', '/echo?a=1'))

  assert.equal(wiki.status, 200)
  assert.equal(wiki.url, site.url('wiki', '/echo?a=1'))
  assert.equal(headersOf(wiki).get('X-Remote-User'), 'jane')
  assert.deepEqual(sessionCookies(jane), [sessionCookie])

  await t.test('another host needs no sign-in, whatever its label is', async () => {
    const notes = await jane.send(site.url('notes.apps', '/echo'))

    assert.equal(notes.status, 200)
    const headers = headersOf(notes)
    assert.equal(headers.get('X-Remote-User'), 'jane')
    assert.equal(headers.get('X-Forwarded-Host'), new URL(site.url('notes.apps', '/')).host)
    assert.equal(site.providers[0]?.hits('/oauth/authorize'), 1)
  })

  await t.test('no application receives the cookie', async () => {
    const cookie = `${cookieOf(jane)}; __Host-gatehouse=x; __Secure-gatehouse-person=y; own=1`
    const { body } = await jane.send(site.url('wiki', '/echo'), { headers: { cookie } })

    assert.match(body, /own=1/)
    assert.doesNotMatch(body, /__(?:Secure|Host)-gatehouse/)
  })

  await t.test('rules are those of each host', async () => {
    assert.equal((await jane.send(site.url('wiki', '/admin/echo'))).status, 403)
    assert.equal((await jane.send(site.url('notes.apps', '/admin/echo'))).status, 200)
  })

  await t.test('a page of a sibling host is a page of another origin', async () => {
    const headers = { 'sec-fetch-site': 'same-site', origin: site.url('evil.apps', '').replace(/\/$/, '') }
    const post = { method: 'POST', headers, body: 'a=1' }

    assert.equal((await jane.send(site.url('wiki', '/echo'), post)).status, 403)
    assert.equal((await jane.fetch(site.url('wiki', '/.gatehouse/session'), post)).status, 403)
    assert.equal((await jane.fetch(site.url('wiki', '/.gatehouse/sign-out'), post)).status, 403)
    const question = await jane.send(site.url('wiki', '/.gatehouse/sign-out'), {
      headers: { 'sec-fetch-site': 'same-site' },
    })
    assert.match(question.body, /<form/)
    assert.equal(await isSignedIn(jane, site, 'wiki'), true)
  })

  await t.test('a host that the configuration does not name is not served', async () => {
    for (const host of ['apps', 'other']) assert.equal((await jane.send(site.url(host, '/echo'))).status, 404)
  })
})

function cookieOf({ kept }: JarBrowser): string {
  return kept
    .filter(({ name }) => name.includes('gatehouse'))
    .map(({ name, value }) => `${name}=${value}`)
    .join('; ')
}

test('A sign-in begins and ends at external_url, so one callback is registered', async (t) => {
  const site = await startSite(t)
  const jane = site.browser()

  const first = await jane.send(site.url('notes.apps', '/deep?x=1'))

  const signIn = new URL(String(first.headers['location']))
  assert.equal(signIn.origin + signIn.pathname, site.url('sso', '/.gatehouse/sign-in'))
  assert.equal(signIn.searchParams.get('return_to'), site.url('notes.apps', '/deep?x=1'))
  const second = await jane.send(signIn.href)
  const authorize = new URL(String(second.headers['location']))
  assert.equal(authorize.searchParams.get('redirect_uri'), site.url('sso', '/.gatehouse/callback'))
  assert.match(String(second.headers['set-cookie']), /^__Host-gatehouse-signin-/)

  await t.test('a link to the sign-in of another host leads there too', async () => {
    const link = await jane.send(site.url('wiki', '/.gatehouse/sign-in?return_to=/page&prompt=login'))

    const { origin, searchParams } = new URL(String(link.headers['location']))
    assert.equal(`${origin}/`, site.url('sso', '/'))
    assert.deepEqual(Object.fromEntries(searchParams), { return_to: site.url('wiki', '/page'), prompt: 'login' })
  })

  await t.test('a portal starts a sign-in that ends at another host', async () => {
    const iss = site.providers[0]?.issuer ?? ''
    const start = (at: string, target: string) => {
      const query = new URLSearchParams({ iss, target_link_uri: target })
      return site.browser().get(site.url(at, `/.gatehouse/initiate-login?${String(query)}`))
    }

    assert.equal((await start('sso', site.url('notes.apps', '/echo'))).url, site.url('notes.apps', '/echo'))
    assert.equal((await start('wiki', '/echo')).url, site.url('wiki', '/echo'))
    assert.equal((await start('sso', 'https://elsewhere.example/echo')).url, site.url('sso', '/'))
  })

  await t.test('a page that opens a sign-in in another window gets a new session', async () => {
    await jane.get(site.url('wiki', '/echo'))
    const before = cookieOf(jane)
    const handed = await jane.send(
      site.url('wiki', '/.gatehouse/sign-in?return_to=/.gatehouse/signed-in'),
      fromThisSite,
    )
    const headers = (from: string) => ({ 'sec-fetch-site': 'same-site', referer: site.url(from, '/') })
    const location = String(handed.headers['location'])

    const ofSibling = await jane.send(location, { headers: headers('evil.apps') })
    assert.equal(ofSibling.headers['location'], site.url('wiki', '/.gatehouse/signed-in'))
    const end = await jane.get(location, { headers: headers('wiki') })

    assert.equal(end.url, site.url('wiki', '/.gatehouse/signed-in'))
    assert.notEqual(cookieOf(jane), before)
  })
})

for (const at of ['wiki', 'notes.apps', 'sso'])
  test(`A sign-out at ${at} ends the session for all hosts`, async (t) => {
    const site = await startSite(t)
    const jane = site.browser()
    await jane.get(site.url('wiki', '/echo'))
    const cookie = cookieOf(jane)

    const page = await jane.get(site.url(at, '/.gatehouse/sign-out'), fromThisSite)

    assert.equal(new URL(page.url).origin, new URL(site.url(at, '/')).origin)
    assert.match(page.body, /You are signed out/)
    assert.deepEqual(gatewayCookies(jane), [])
    assert.deepEqual(site.providers[0]?.sessions(), [])
    for (const host of ['wiki', 'notes.apps'])
      assert.equal((await site.browser().fetch(site.url(host, '/echo'), { headers: { cookie } })).status, 401)
  })

test('A Logout Token ends the session for all hosts, and open pages learn it', async (t) => {
  const site = await startSite(t)
  const jane = site.browser()
  await jane.get(site.url('wiki', '/echo'))
  const page = await site.openPage('notes.apps', cookieOf(jane))

  assert.equal(await site.logOut('jane'), 200)

  assert.match(await page.rest, /event: ended/)
  for (const host of ['wiki', 'notes.apps']) assert.equal(await isSignedIn(jane, site, host), false)
})

test('Each host of a domain has the providers of its application', async (t) => {
  const site = await startSite(t, {
    providers: ['staff', 'partners'],
    upstreams: (upstream, port) => `
  wiki: { external_url: "https://wiki.${siteDomain}:${port}", url: ${upstream.origin}, headers: { X-Issuer: iss }, providers: [staff] }
  apps: { external_url: "https://*.apps.${siteDomain}:${port}", url: ${upstream.origin}, headers: { X-Issuer: iss } }`,
  })
  const [staff, partners] = site.providers
  const jane = site.browser()

  const choice = await jane.get(site.url('notes.apps', '/echo'))
  assert.equal(new URL(choice.url).origin, new URL(site.url('sso', '/')).origin)
  const link = linksOf(choice).find((href) => href.includes('/partners/sign-in'))
  const notes = await jane.get(String(link))

  assert.equal(notes.url, site.url('notes.apps', '/echo'))
  assert.equal(headersOf(notes).get('X-Issuer'), partners?.issuer)
  assert.equal((await jane.send(site.url('todo.apps', '/echo'))).status, 200)
  const wiki = await jane.get(site.url('wiki', '/echo'))
  assert.equal(headersOf(wiki).get('X-Issuer'), staff?.issuer)
  assert.deepEqual(sessionCookies(jane), [`__Secure-gatehouse-at-staff below ${siteDomain}`])
})

test('Two replicas share the session of a domain', async (t) => {
  const site = await startSite(t, { replicas: 2 })
  const jane = site.browser()
  await jane.get(site.url('wiki', '/echo'))

  assert.equal((await jane.send(site.url('notes.apps', '/echo', 1))).status, 200)
  await t.test('an operator finds the session by each upstream', async (t) => {
    const loaded = loadConfig(String(site.replicas[0]?.file), secrets)
    assert.ok(loaded.ok)
    const log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
    const administration = await openAdministration(loaded.config, { log, clock: systemClock })
    t.after(() => administration.close())
    for (const upstream of ['wiki', 'apps']) {
      const listed: string[] = []
      for await (const { sub } of administration.list({ upstream })) listed.push(sub)
      assert.deepEqual(listed, ['jane'])
    }
  })
  await jane.get(site.url('notes.apps', '/.gatehouse/sign-out', 1), fromThisSite)

  assert.equal(await isSignedIn(jane, site, 'wiki'), false)
})

/** The value of the session cookie. */
function cookieValue(kept: JarBrowser['kept']): string {
  return kept.find(({ name }) => name === '__Secure-gatehouse')?.value ?? ''
}

test('A cookie that another host of the domain adds neither hides nor replaces a session', async (t) => {
  const site = await startSite(t)
  const [jane, mallory] = [site.browser(), site.browser('zoe')]
  await jane.get(site.url('wiki', '/echo'))
  await mallory.get(site.url('notes.apps', '/echo'))
  const own = jane.kept
  const added = (value: string, domain: string, path: string) => [
    ...own,
    { name: '__Secure-gatehouse', value, domain, path },
  ]
  const stolen = cookieValue(mallory.kept)

  for (const [domain, path] of [
    [siteDomain, '/echo'],
    [`wiki.${siteDomain}`, '/'],
  ] as const) {
    await t.test(`junk for ${domain}${path}`, async () => {
      jane.kept = added('junk', domain, path)
      const page = await jane.send(site.url('wiki', '/echo'))

      assert.equal(page.status, 200)
      assert.equal(headersOf(page).get('X-Remote-User'), 'jane')
      assert.equal((await jane.fetch(site.url('wiki', '/.gatehouse/session'))).status, 200)
    })

    await t.test(`the session of another person for ${domain}${path}`, async () => {
      jane.kept = added(stolen, domain, path)
      const refused = await jane.send(site.url('wiki', '/echo'))

      assert.equal(refused.status, 400)
      assert.match(refused.body, /cookies of two sessions/)
      const page = await jane.send(site.url('wiki', '/echo'))
      assert.equal(headersOf(page).get('X-Remote-User'), 'jane')
      assert.equal(await isSignedIn(mallory, site, 'wiki'), true)
    })
  }

  await t.test('many cookies that look like sessions', async () => {
    const values = [...'ABCDEFGHIJKLMNOPQRSTUVWX'].map(
      (letter) => stolen.slice(0, -1) + (stolen.endsWith(letter) ? 'z' : letter),
    )
    const cookie = [...values, cookieValue(own)].map((value) => `__Secure-gatehouse=${value}`).join('; ')
    const page = await jane.send(site.url('wiki', '/echo'), { headers: { cookie } })

    assert.equal(headersOf(page).get('X-Remote-User'), 'jane')
  })

  await t.test('a sign-out ends the session of the person', async () => {
    jane.kept = added('junk', `wiki.${siteDomain}`, '/')
    await jane.get(site.url('wiki', '/.gatehouse/sign-out'), fromThisSite)

    jane.kept = own
    assert.equal(await isSignedIn(jane, site, 'wiki'), false)
  })
})

/** Each host is an application of its own, also the one where people sign in. */
const threeHosts = (upstream: URL, port: number) =>
  ['sso', 'wiki', 'blog']
    .map((name) => `\n  ${name}: { external_url: "https://${name}.${siteDomain}:${port}", url: ${upstream.origin} }`)
    .join('')

test('When the domain is set, the cookies of single hosts end with the next sign-in', async (t) => {
  const site = await startSite(t, { store: 'redis', session: '', upstreams: threeHosts })
  const jane = site.browser()
  await jane.get(site.url('sso', '/echo'))
  assert.deepEqual(sessionCookies(jane), [`__Host-gatehouse at sso.${siteDomain}`])

  await site.restart(`cookie: { domain: ${siteDomain} }`)
  assert.equal(await isSignedIn(jane, site, 'sso'), false)
  await jane.get(site.url('wiki', '/echo'))
  assert.deepEqual(sessionCookies(jane), [sessionCookie])

  await site.restart('')
  assert.equal(await isSignedIn(jane, site, 'wiki'), false)
  assert.equal(await isSignedIn(jane, site, 'sso'), false)
})

test('When the domain is removed, its cookie ends at the next page', async (t) => {
  const site = await startSite(t, { store: 'redis', upstreams: threeHosts })
  const jane = site.browser()
  await jane.get(site.url('sso', '/echo'))

  await site.restart('')
  await jane.send(site.url('sso', '/echo'))

  assert.deepEqual(sessionCookies(jane), [])
})

test('The page with the sessions of a person is at each host, and a refused sign-in goes on at the first one', async (t) => {
  const session = `cookie: { domain: ${siteDomain} }\n  page: true\n  max_per_person: { count: 1, when_exceeded: refuse }`
  const site = await startSite(t, { session })
  const [one, two] = [site.browser(), site.browser()]
  const page = await one.get(site.url('wiki', '/.gatehouse/sessions'))
  assert.deepEqual([page.status, page.url], [200, site.url('wiki', '/.gatehouse/sessions')])

  const refused = await two.get(site.url('notes.apps', '/echo?a=1'))
  assert.deepEqual([refused.status, new URL(refused.url).host], [403, new URL(site.url('sso', '/')).host])
  const next = await press(two, refused, /^End the session of/)

  assert.deepEqual([next.status, next.url], [200, site.url('notes.apps', '/echo?a=1')])
  assert.equal(await isSignedIn(one, site, 'wiki'), false)
  assert.equal(await isSignedIn(two, site, 'wiki'), true)
})
