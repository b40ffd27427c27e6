import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTransmitter } from '../support/transmitter.ts'
import { startWorld, type World } from '../support/world.ts'

/** Whether a person is signed in whose sessions `end` ends between the two redirects. */
async function isSignedInAfter(end: () => Promise<Response>, world: World): Promise<boolean> {
  const jane = world.browser('jane')
  const callback = await jane.until(`${world.url}/echo`, '/.gatehouse/callback')

  assert.equal((await end()).ok, true)

  await jane.get(callback)
  return (await jane.fetch(`${world.url}/echo`)).status === 200
}

function post(url: string, content: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const body = JSON.stringify(content)
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })
}

for (const [email, isVerified] of [
  ['Jane.Doe@example.com', true],
  ['Jane.Doe@example.com', undefined],
  ['jane.doe@EXAMPLE.com', true],
] as const)
  test(`A program ends the sign-in of ${email}, verified: ${isVerified}`, async (t) => {
    const world = await startWorld(t, { settings: 'admin: { listen: "127.0.0.1:0", page: {} }' })
    world.provider.bend('/oauth/userinfo', (body) => void (body['email_verified'] = isVerified))
    const { port } = world.replicas[0]?.gateway.adminAddress ?? {}
    const end = () => post(`http://127.0.0.1:${port}/sessions/end`, { email })

    assert.equal(await isSignedInAfter(end, world), false)
  })

test('A request for Global Token Revocation ends the sign-in of an e-mail address', async (t) => {
  const { issuer, metadata, token } = await startTransmitter(t)
  const keys = `issuer: "${issuer}", jwks_uri: "${String(metadata['jwks_uri'])}", signing_alg: ES256`
  const world = await startWorld(t, {
    providerSettings: `global_token_revocation: { ${keys}, trusted_subjects: [email] }`,
  })
  world.provider.bend('/oauth/userinfo', (body) => void (body['email_verified'] = true))
  const url = `${world.url}/.gatehouse/global-token-revocation`
  const exp = Math.floor(Date.now() / 1000) + 300
  const authorization = `Bearer ${token({ aud: url, exp }, { header: { typ: 'global-token-revocation+jwt' } })}`
  const sub_id = { format: 'email', email: 'Jane.Doe@example.com' }

  assert.equal(await isSignedInAfter(() => post(url, { sub_id }, { authorization }), world), false)
})
