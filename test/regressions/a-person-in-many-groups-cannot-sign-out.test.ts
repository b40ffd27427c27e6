import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { startChromium, type Person } from '../support/chromium.ts'
import { startWorld, type World } from '../support/world.ts'

const chromium = await startChromium()

/** The identifiers of 200 groups, as the ID Tokens of Entra ID list them. */
const groups = Array.from({ length: 200 }, (_, index) => `6f1b0a3c-7d42-4c1e-9f0a-${String(index).padStart(12, '0')}`)
const fromThisSite = { headers: { 'sec-fetch-site': 'same-origin' } }

/** A provider behind a proxy that rejects URLs beyond 8 KiB, as nginx does by default. */
async function startCrowdedWorld(
  t: TestContext,
  {
    providerSettings = '',
    post,
  }: { readonly providerSettings?: string; readonly post?: 'as_get' | 'rejected' | undefined } = {},
): Promise<World> {
  const world = await startWorld(t, {
    providerSettings,
    provider: {
      adjust: (configuration) => ({
        ...configuration,
        conformIdTokenClaims: false,
        claims: { ...configuration.claims, openid: ['sub', 'groups'] },
        findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub, groups }) }),
      }),
    },
  })
  world.provider.fault('/oauth/logout', (req, res, pass) => {
    if ((req.url ?? '').length > 8192) res.writeHead(414).end()
    else if (req.method !== 'POST' || post === undefined) pass()
    else if (post === 'rejected') res.writeHead(405).end()
    else
      // Keycloak and others read a form like the parameters of a URL.
      void text(req).then((form) => {
        const { 'content-length': _length, 'content-type': _type, ...headers } = req.headers
        Object.assign(req, { method: 'GET', url: `/oauth/logout?${form}`, headers })
        pass()
      })
  })
  return world
}

for (const [how, post] of [
  ['a provider that reads a form of the browser', 'as_get'],
  ['a provider that ends the session without a browser', undefined],
] as const)
  test(`A person in 200 groups signs out at ${how}`, async (t) => {
    const world = await startCrowdedWorld(t, { post })
    const jane = await chromium.person(t)
    const page = await signIn(jane, world)

    await page.goto(`${world.url}/.gatehouse/sign-out`)

    await page.getByRole('heading', { name: 'You are signed out.' }).waitFor()
    assert.equal(new URL(page.url()).pathname, '/.gatehouse/signed-out')
    assert.deepEqual(world.provider.sessions(), [])
    assert.deepEqual(
      jane.complaints.filter((complaint) => complaint.includes('Content Security Policy')),
      [],
    )
  })

test('Without scripts, a person in 200 groups signs out with a button', async (t) => {
  const world = await startCrowdedWorld(t, { post: 'as_get' })
  const page = await signIn(await chromium.person(t, { javaScriptEnabled: false }), world)

  await page.goto(`${world.url}/.gatehouse/sign-out`)
  await page.getByRole('button', { name: 'Continue' }).click()

  await page.getByRole('heading', { name: 'You are signed out.' }).waitFor()
  assert.deepEqual(world.provider.sessions(), [])
})

for (const [why, options] of [
  ['With end_session_form: never', { providerSettings: 'end_session_form: never' }],
  ['Where the provider takes no form', { post: 'rejected' }],
] as const)
  test(`${why}, client_id replaces a long ID Token`, async (t) => {
    const world = await startCrowdedWorld(t, options)
    const jane = world.browser()
    await jane.get(`${world.url}/echo`)

    const first = await jane.send(`${world.url}/.gatehouse/sign-out`, fromThisSite)

    const { searchParams } = new URL(String(first.headers['location']))
    assert.deepEqual([...searchParams.keys()].sort(), ['client_id', 'post_logout_redirect_uri', 'state'])
    assert.equal(searchParams.get('client_id'), 'orders')
  })

test('With end_session_form: always, no URL contains an ID Token', async (t) => {
  const world = await startWorld(t, { providerSettings: 'end_session_form: always' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const page = await jane.send(`${world.url}/.gatehouse/sign-out`, fromThisSite)

  assert.equal(page.status, 200)
  assert.equal(page.headers['location'], undefined)
  assert.match(page.body, new RegExp(`<form method="post" action="${world.provider.issuer}/oauth/logout">`))
  assert.match(page.body, /name="id_token_hint" value="ey/)
})

async function signIn(person: Person, world: World): Promise<Page> {
  const page = await person.tab()
  await page.goto(world.url)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
  await page.waitForURL(`${world.url}/`)
  return page
}
