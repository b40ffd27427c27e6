import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { sha256 } from '../../src/core/random.ts'
import type { Browser, Visit } from '../support/browser.ts'
import { issueCertificates, siteDomain } from '../support/certificates.ts'
import { startWorld, type World } from '../support/world.ts'

const secret = 'a secret of the frame'
const sameOrigin = { 'sec-fetch-site': 'same-origin' }
const script = { accept: '*/*', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }

async function startEmbedded(t: TestContext, session = ''): Promise<{ world: World; jane: Browser }> {
  const { server, client } = issueCertificates()
  const world = await startWorld(t, {
    externalUrl: (port) => `https://app.${siteDomain}:${port}`,
    listen: (address) => `{ address: "${address}", tls: { cert_file: ${server.cert}, key_file: ${server.key} } }`,
    session: `embedded_in: [https://portal.example.com]\n  ${session}`,
    browserCa: client.ca,
  })
  return { world, jane: world.browser() }
}

function signInUrl(world: World): string {
  const return_to = `/.gatehouse/signed-in?frame=${sha256(secret)}`
  return `${world.url}/.gatehouse/sign-in?return_to=${encodeURIComponent(return_to)}`
}

/** Signs in as the window of a frame does. Resolves to the code for the frame. */
async function codeFor(world: World, window: Browser): Promise<string> {
  const { body } = await window.get(signInUrl(world), { headers: sameOrigin })
  return /"code":"([\w-]+)"/.exec(body)?.[1] ?? ''
}

function exchange(
  world: World,
  frame: Browser,
  form: { readonly code: string; readonly secret: string },
  headers: Readonly<Record<string, string>> = sameOrigin,
): Promise<Visit> {
  return frame.send(`${world.url}/.gatehouse/frame-session`, {
    method: 'POST',
    headers: { ...script, 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(form).toString(),
  })
}

test('a code and the secret give the frame a session, and the window none', async (t) => {
  const { world, jane } = await startEmbedded(t)
  const code = await codeFor(world, jane)
  assert.equal(jane.cookies.has('__Host-gatehouse'), false)

  const { status, headers } = await exchange(world, jane, { code, secret })

  assert.equal(status, 204)
  assert.match(
    String(headers['set-cookie']),
    /^__Host-gatehouse-frame\.session=[\w-]+; Path=\/; HttpOnly; SameSite=None; Partitioned; Secure$/,
  )
})

for (const [why, status, act] of [
  ['with the secret of another frame', 400, (world, jane, code) => exchange(world, jane, { code, secret: 'other' })],
  ['that was changed', 400, (world, jane, code) => exchange(world, jane, { code: `${code.slice(0, -4)}AAAA`, secret })],
  [
    'that was used before',
    400,
    async (world, jane, code) => {
      await exchange(world, world.browser(), { code, secret })
      return exchange(world, jane, { code, secret })
    },
  ],
  [
    'after more than a minute',
    400,
    (world, jane, code) => {
      world.moveClock(61_000)
      return exchange(world, jane, { code, secret })
    },
  ],
  [
    'by a page of the portal',
    403,
    (world, jane, code) => exchange(world, jane, { code, secret }, { 'sec-fetch-site': 'cross-site' }),
  ],
  [
    'by a page of another origin of the site',
    403,
    (world, jane, code) => exchange(world, jane, { code, secret }, { 'sec-fetch-site': 'same-site' }),
  ],
  [
    'to a frame that has the session of the window',
    403,
    async (world, jane, code) => {
      await jane.get(`${world.url}/echo`)
      return exchange(world, jane, { code, secret })
    },
  ],
] satisfies readonly (readonly [string, number, (world: World, jane: Browser, code: string) => Promise<Visit>])[])
  test(`a code gives no session ${why}`, async (t) => {
    const { world, jane } = await startEmbedded(t)
    const code = await codeFor(world, jane)

    const visit = await act(world, jane, code)

    assert.equal(visit.status, status)
    assert.equal(jane.cookies.has('__Host-gatehouse-frame.session'), false)
  })

for (const [who, headers] of [
  ['the portal', { 'sec-fetch-site': 'cross-site' }],
  ['another origin of the site', { 'sec-fetch-site': 'same-site' }],
  ['a typed address', { 'sec-fetch-site': 'none' }],
  ['a program', {}],
] as const)
  test(`a sign-in for a frame does not begin by ${who}`, async (t) => {
    const { world, jane } = await startEmbedded(t)

    const { status, headers: received } = await jane.send(signInUrl(world), { headers })

    assert.equal(status, 403)
    assert.equal(received['location'], undefined)
  })

test('a code gives no session when a Logout Token has ended it', async (t) => {
  const { world, jane } = await startEmbedded(t)
  const code = await codeFor(world, jane)
  const logout_token = await world.provider.logoutToken({ sub: 'jane' })
  const form = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' } }
  const body = new URLSearchParams({ logout_token }).toString()
  assert.equal((await jane.send(`${world.url}/.gatehouse/backchannel-logout`, { ...form, body })).status, 200)

  const { status } = await exchange(world, jane, { code, secret })

  assert.equal(status, 403)
  assert.equal(jane.cookies.has('__Host-gatehouse-frame.session'), false)
})

const navigation = { 'sec-fetch-mode': 'navigate' }

for (const [what, status, headers, method = 'GET'] of [
  [
    'a load of the frame by the portal',
    200,
    { ...navigation, 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' },
  ],
  ['a request of its own page', 200, { ...script, ...sameOrigin }],
  ['a changing request of its own page', 200, { ...script, ...sameOrigin }, 'POST'],
  ['a request of the portal', 401, { ...script, 'sec-fetch-site': 'cross-site' }],
  [
    'a form of the portal in the frame',
    401,
    { ...navigation, 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' },
    'POST',
  ],
  ['a request of another origin of the site', 401, { ...script, 'sec-fetch-site': 'same-site' }],
  ['a load of the whole window', 303, { ...navigation, 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' }],
] as const)
  test(`the session of a frame ${status === 200 ? 'counts' : 'does not count'} for ${what}`, async (t) => {
    const { world, jane } = await startEmbedded(t)
    await exchange(world, jane, { code: await codeFor(world, jane), secret })

    const visit = await jane.send(`${world.url}/echo`, { headers, method })

    assert.equal(visit.status, status)
  })

test('a sign-in for a frame keeps the session of the window, and counts against max_per_person', async (t) => {
  const { world, jane } = await startEmbedded(t, 'max_per_person: 2')
  await jane.get(`${world.url}/echo`)
  const own = jane.cookies.get('__Host-gatehouse')?.value

  await exchange(world, world.browser(), { code: await codeFor(world, jane), secret })

  assert.equal(jane.cookies.get('__Host-gatehouse')?.value, own)
  assert.equal((await jane.send(`${world.url}/echo`)).status, 200)
  await world.browser().get(`${world.url}/echo`)
  assert.equal((await jane.send(`${world.url}/echo`)).status, 303)
})

test('a page of the portal cannot sign the person out in the frame', async (t) => {
  const { world, jane } = await startEmbedded(t)
  await exchange(world, jane, { code: await codeFor(world, jane), secret })
  const frame = { ...navigation, 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' }

  const { status } = await jane.send(`${world.url}/.gatehouse/sign-out`, { headers: frame })

  assert.equal(status, 403)
  assert.equal((await jane.send(`${world.url}/echo`, { headers: frame })).status, 200)
})

test('without embedded_in, a sign-in gives no code', async (t) => {
  const world = await startWorld(t)

  assert.equal(await codeFor(world, world.browser()), '')
})

test('the portal alone may show the application, and the sign-in page in its frame', async (t) => {
  const { world, jane } = await startEmbedded(t)
  const frame = { ...navigation, 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' }
  const policyOf = ({ headers }: Visit) => /frame-ancestors [^;]*/.exec(String(headers['content-security-policy']))?.[0]

  const page = await jane.send(`${world.url}/echo`, { headers: frame })
  assert.equal(page.status, 401)
  assert.equal(policyOf(page), "frame-ancestors 'self' https://portal.example.com")

  await jane.get(`${world.url}/echo`)
  const application = await jane.send(`${world.url}/echo`)
  assert.equal(policyOf(application), "frame-ancestors 'self' https://portal.example.com")
  assert.equal(policyOf(await jane.send(`${world.url}/.gatehouse/signed-out`)), "frame-ancestors 'none'")
})
