import assert from 'node:assert/strict'
import { test } from 'node:test'
import { application, startHostileWorld, type HostileWorld } from '../corpus/hostile-world.ts'
import { readCases } from '../corpus/lanes.ts'
import type { Browser, Visit } from '../support/browser.ts'

const initiate = ({ url, provider: { issuer } }: HostileWorld, asked: Readonly<Record<string, string>> = {}) =>
  `${url}/.gatehouse/initiate-login?${new URLSearchParams({ iss: issuer, ...asked }).toString()}`

/** Begins a sign-in by a link of another site. */
function follow(browser: Browser, link: string): Promise<Visit> {
  return browser.get(link, { headers: { 'sec-fetch-site': 'cross-site' } })
}

// oidcc-client-test-3rd-party-init-login-test-plan.
test('oidcc-client-test-3rd-party-init-login', async (t) => {
  const world = await startHostileWorld(t)
  const alice = world.browser()

  const { url, status } = await follow(alice, initiate(world))

  assert.deepEqual([url, status], [`${world.url}/`, 200])
  assert.equal(await world.isSignedIn(alice), true)
  assert.deepEqual(world.provider.violations, [])
})

test('The provider gets the login hint, and the person comes to the target page', async (t) => {
  const world = await startHostileWorld(t)
  const target_link_uri = `${world.url}${application}?order=4711`

  const { url } = await follow(world.browser(), initiate(world, { login_hint: 'alice@example.com', target_link_uri }))

  assert.equal(world.provider.asked['login_hint'], 'alice@example.com')
  assert.equal(url, target_link_uri)
})

test('A POST from another site works in the same way', async (t) => {
  const world = await startHostileWorld(t)
  const alice = world.browser()
  const link = new URL(initiate(world, { login_hint: 'alice', target_link_uri: application }))
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site' }

  const { url } = await alice.get(link.origin + link.pathname, {
    method: 'POST',
    headers,
    body: link.search.slice(1),
  })

  assert.equal(url, world.url + application)
  assert.equal(world.provider.asked['login_hint'], 'alice')
  assert.equal(await world.isSignedIn(alice), true)
})

test('A signed-in person goes straight to the page', async (t) => {
  const world = await startHostileWorld(t)
  const alice = world.browser()
  await world.signIn(alice)

  const { status, headers } = await alice.send(initiate(world, { target_link_uri: application }))

  assert.deepEqual([status, headers['location']], [303, application])
  assert.equal(world.provider.hits('authorize'), 1)
})

for (const [what, query] of [
  ['no issuer', ''],
  ['another issuer', 'iss=https://other.example'],
  ['the issuer with a slash at its end', 'iss={issuer}/'],
  ['two issuers', 'iss={issuer}&iss={issuer}'],
] as const)
  test(`A login initiation with ${what} redirects nobody`, async (t) => {
    const world = await startHostileWorld(t)
    const link = `${world.url}/.gatehouse/initiate-login?${query.replaceAll('{issuer}', world.provider.issuer)}`

    const { status, headers } = await world.browser().send(link)

    assert.deepEqual([status, headers['location'], headers['set-cookie']], [400, undefined, undefined])
    assert.equal(world.provider.hits('authorize'), 0)
  })

test('A login initiation never leads to another origin', async (t) => {
  const world = await startHostileWorld(t)
  const alice = world.browser()
  await world.signIn(alice)
  const { host } = new URL(world.url)
  const { cases } = readCases<{ readonly cases: readonly { readonly target: string }[] }>('../corpus/return-to.json')
  const own = [
    `${world.url}@evil.example/`,
    `http://evil.example@${host}/app`,
    `${world.url}.evil.example/`,
    `${world.url}//evil.example`,
  ]
  for (const target of [...own, ...cases.map(({ target }) => target.replaceAll('{host}', host))]) {
    const { status, headers } = await alice.send(initiate(world, { target_link_uri: target }))
    assert.equal(status, 303)
    const location = String(headers['location'])
    assert.equal(new URL(location, world.url).origin, world.url, target)
    assert.doesNotMatch(location, /^\/[\\/]|^[^/]|\/\.gatehouse/i, target)
  }
})

test('A hint that is longer than any name is left out', async (t) => {
  const world = await startHostileWorld(t)

  await follow(world.browser(), initiate(world, { login_hint: 'a'.repeat(1001) }))

  assert.equal(world.provider.asked['login_hint'], undefined)
})
