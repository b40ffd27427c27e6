import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { auditEventsIn } from '../support/audit-schema.ts'
import type { Browser } from '../support/browser.ts'
import { ecKey, hmacJwt, type Json, part, type SigningKey } from '../support/signing-provider.ts'
import { startTransmitter, type Transmitter } from '../support/transmitter.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

interface RevocationWorld extends World {
  readonly sender: Transmitter
  token(payload?: Json, options?: { readonly key?: SigningKey; readonly header?: Json }): string
  /** Sends a request. Resolves to its status. */
  revoke(content: unknown, authorization?: string, headers?: Readonly<Record<string, string>>): Promise<Response>
  hasSession(browser: Browser): Promise<boolean>
  audits(name: string): readonly Readonly<Record<string, unknown>>[]
}

const typ = 'global-token-revocation+jwt'
const seconds = () => Math.floor(Date.now() / 1000)

/** A gateway whose sessions an organization of its own may end, as one at Okta. */
async function startRevocation(
  t: TestContext,
  { own = '', ...options }: WorldOptions & { readonly own?: string } = {},
): Promise<RevocationWorld> {
  const sender = await startTransmitter(t)
  const [issuer, jwks_uri] = [sender.issuer, String(sender.metadata['jwks_uri'])]
  const world = await startWorld(t, {
    providerSettings: `global_token_revocation: { issuer: "${issuer}", jwks_uri: "${jwks_uri}", signing_alg: ES256 ${own} }`,
    ...options,
  })
  const url = `${world.url}/.gatehouse/global-token-revocation`
  const token: RevocationWorld['token'] = (payload = {}, options = {}) =>
    sender.token({ aud: url, exp: seconds() + 300, ...payload }, { ...options, header: { typ, ...options.header } })
  return {
    ...world,
    sender,
    token,
    revoke: (content, authorization = `Bearer ${token()}`, headers = {}) =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization, ...headers },
        body: typeof content === 'string' ? content : JSON.stringify(content),
      }),
    hasSession: async (browser) => (await browser.fetch(`${world.url}/api/me`)).status === 200,
    audits: (name) =>
      world.replicas.flatMap(({ log }) =>
        auditEventsIn(log).flatMap(({ message, fields }) => (message === name ? [fields] : [])),
      ),
  }
}

async function signedIn(world: World, person = 'jane'): Promise<Browser> {
  const browser = world.browser(person)
  await browser.get(`${world.url}/`)
  return browser
}

for (const store of ['memory', 'redis'] as const)
  test(`A request ends all sessions of a person on every replica, and no sessions of others: ${store}`, async (t) => {
    const world = await startRevocation(t, { store, replicas: store === 'redis' ? 2 : 1 })
    const [laptop, phone, samir] = [await signedIn(world), await signedIn(world), await signedIn(world, 'samir')]
    const sub_id = { format: 'iss_sub', iss: world.provider.issuer, sub: 'jane' }

    const response = await world.revoke({ sub_id })

    assert.equal(response.status, 204)
    assert.equal(await response.text(), '')
    for (const { url } of world.replicas)
      for (const [browser, status] of [
        [laptop, 401],
        [phone, 401],
        [samir, 200],
      ] as const)
        assert.equal((await browser.fetch(`${url}/api/me`)).status, status)
    const [{ event, action, matched, sub } = {}] = world.audits('signal.obeyed')
    assert.deepEqual([event, action, matched, sub], ['global-token-revocation', 'end', 2, 'jane'])
    assert.deepEqual(
      world.audits('session.ended').map(({ by }) => by),
      ['signal', 'signal'],
    )
    assert.equal((await world.revoke({ sub_id })).status, 204, 'a person without a session')
  })

test('A sign-in that is under way when the request arrives creates no session', async (t) => {
  const world = await startRevocation(t)
  const jane = world.browser()
  const callback = await jane.until(`${world.url}/`, '/.gatehouse/callback')

  assert.equal((await world.revoke({ sub_id: { format: 'opaque', id: 'jane' } })).status, 204)

  await jane.get(callback)
  assert.equal(await world.hasSession(jane), false)
})

test('An e-mail address ends the sessions of its person only if the configuration trusts it', async (t) => {
  for (const [own, status] of [
    ['', 400],
    [', trusted_subjects: [email]', 204],
  ] as const) {
    const world = await startRevocation(t, { own })
    world.provider.bend('/oauth/userinfo', (body) => void (body['email_verified'] = true))
    const [jane, samir] = [await signedIn(world), await signedIn(world, 'samir')]

    // Okta has sent "subject" before the draft named it "sub_id".
    const response = await world.revoke({ subject: { format: 'email', email: 'jane.doe@EXAMPLE.com' } })

    assert.equal(response.status, status)
    assert.deepEqual([await world.hasSession(jane), await world.hasSession(samir)], [status === 400, true])
  }
})

test('A repeated request does not end a later session, but another person with the same JWT ends', async (t) => {
  const world = await startRevocation(t)
  const [authorization, samir] = [`Bearer ${world.token({ jti: 'once' })}`, await signedIn(world, 'samir')]
  await signedIn(world)
  const of = (id: string) => ({ sub_id: { format: 'opaque', id } })
  assert.equal((await world.revoke(of('jane'), authorization)).status, 204)
  const later = await signedIn(world)

  assert.equal((await world.revoke(of('jane'), authorization)).status, 204)
  assert.equal(await world.hasSession(later), true)
  assert.equal((await world.revoke(of('samir'), authorization)).status, 204)
  assert.equal(await world.hasSession(samir), false)
})

test('The same JWT ends the sessions of two e-mail addresses, in any letter case', async (t) => {
  const world = await startRevocation(t, { own: ', trusted_subjects: [email]' })
  world.provider.bend('/oauth/userinfo', (body) => {
    body['email_verified'] = true
    if (body['email'] === 'jane.doe@example.com') body['email'] = 'Jane.Doe@example.com'
  })
  const [authorization, jane, samir] = [
    `Bearer ${world.token()}`,
    await signedIn(world),
    await signedIn(world, 'samir'),
  ]

  // In any letter case, as for an administrator.
  for (const email of ['JANE.doe@example.com', 'Samir.Haddad@Example.COM'])
    assert.equal((await world.revoke({ sub_id: { format: 'email', email } }, authorization)).status, 204)

  assert.deepEqual([await world.hasSession(jane), await world.hasSession(samir)], [false, false])
})

test('Without the setting, the endpoint does not exist', async (t) => {
  const world = await startWorld(t)

  const response = await fetch(`${world.url}/.gatehouse/global-token-revocation`, { method: 'POST' })

  assert.equal(response.status, 404)
})

/** No test below ends the session of its browser. */
const shared = await startRevocation({ after } as unknown as TestContext)
const jane = await signedIn(shared)
const person = { sub_id: { format: 'opaque', id: 'jane' } }

const refusedTokens: Readonly<Record<string, string | (() => string)>> = {
  'is missing': '',
  'is a password': `Basic ${btoa('jane:secret')}`,
  'is no JWT': 'Bearer abc',
  'is of another type': () => `Bearer ${shared.token({}, { header: { typ: 'JWT' } })}`,
  'is an access token': () => `Bearer ${shared.token({}, { header: { typ: 'at+jwt' } })}`,
  'is a security event': () => `Bearer ${shared.token({}, { header: { typ: 'secevent+jwt' } })}`,
  'is from another issuer': () => `Bearer ${shared.token({ iss: shared.provider.issuer })}`,
  'is for another URL': () => `Bearer ${shared.token({ aud: `${shared.url}/.gatehouse/backchannel-logout` })}`,
  'is for the client': () => `Bearer ${shared.token({ aud: 'orders' })}`,
  'has no audience': () => `Bearer ${shared.token({ aud: undefined })}`,
  'has expired': () => `Bearer ${shared.token({ exp: seconds() - 3_600 })}`,
  'has no expiry': () => `Bearer ${shared.token({ exp: undefined })}`,
  'is from yesterday': () => `Bearer ${shared.token({ iat: seconds() - 86_400 })}`,
  'has no jti': () => `Bearer ${shared.token({ jti: undefined })}`,
  'is signed with another key': () => `Bearer ${shared.token({}, { key: ecKey('signals') })}`,
  'is signed with a shared secret': () => `Bearer ${hmacJwt({}, 'secret', { typ })}`,
  'is not signed': () => `Bearer ${part({ alg: 'none', typ })}.${part({ iss: shared.sender.issuer })}.`,
}

for (const [what, given] of Object.entries(refusedTokens))
  test(`A request whose JWT ${what} gets 401 and ends nothing`, async () => {
    const response = await shared.revoke(person, typeof given === 'string' ? given : given())

    assert.equal(response.status, 401)
    assert.equal(response.headers.get('www-authenticate'), 'Bearer error="invalid_token"')
    assert.equal(await shared.hasSession(jane), true)
    assert.equal(shared.audits('signal.refused').at(-1)?.['code'], 'ERR_REVOCATION_INVALID')
  })

const refusedContents: Readonly<Record<string, unknown>> = {
  'is no JSON': '{',
  'is a list': [person],
  'is empty': '',
  'has no subject': {},
  'has a text as its subject': { sub_id: 'jane' },
  'has two subjects': { sub_id: person.sub_id, subject: { format: 'opaque', id: 'samir' } },
  'has a subject of an unknown format': { sub_id: { format: 'phone_number', phone_number: '+12065550100' } },
  'has a subject of another issuer': { sub_id: { format: 'iss_sub', iss: 'https://other.example', sub: 'jane' } },
  'has a subject without id': { sub_id: { format: 'opaque' } },
  'is nested too deeply': `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`,
}

for (const [what, content] of Object.entries(refusedContents))
  test(`A request whose content ${what} gets 400 and ends nothing`, async () => {
    assert.equal((await shared.revoke(content)).status, 400)
    assert.equal(await shared.hasSession(jane), true)
  })

test('A form, a large content and another method are refused', async () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }

  assert.equal((await shared.revoke(person, undefined, form)).status, 400)
  assert.equal((await shared.revoke('x'.repeat(1024 * 1024))).status, 413)
  assert.equal((await fetch(`${shared.url}/.gatehouse/global-token-revocation`)).status, 405)
  assert.equal(await shared.hasSession(jane), true)
})
