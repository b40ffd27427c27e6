import assert from 'node:assert/strict'
import { test } from 'node:test'
import { audience, startApi } from '../support/api-world.ts'
import { auditsOf } from '../support/audits.ts'

test('A request with an access token reaches the application with the headers of the caller, without the token', async (t) => {
  const world = await startApi(t)
  const token = world.token()

  const response = await world.call('/api/orders', token)

  assert.equal(response.status, 200)
  const [fields] = world.seen
  assert.deepEqual([fields?.['x-sub'], fields?.['x-client'], fields?.['x-scope']], ['jane', 'cli', 'read write'])
  assert.equal(fields?.authorization, undefined)
  assert.equal(world.gateway.access.at(-1)?.['caller'], 'access_token')
  const written = JSON.stringify([world.gateway.log, world.gateway.access])
  assert.ok(!written.includes(token) && !written.includes(token.split('.')[1] ?? ''))
})

test('Without a token, a script gets both challenges, and a page load is redirected to the sign-in', async (t) => {
  const world = await startApi(t)

  const response = await world.send('/write/x')

  assert.equal(response.status, 401)
  assert.equal(response.challenge, 'Bearer scope="write", Gatehouse realm="sign-in"')
  assert.equal((await world.send('/api/orders', { accept: 'text/html' })).status, 303)
})

test('A token counts only in rules that accept it: elsewhere the application gets Authorization as before', async (t) => {
  const world = await startApi(t, { upstream: 'cache: private' })

  assert.equal((await world.call('/elsewhere', world.token())).status, 401)
  assert.equal(world.seen.length, 0)
})

test('Other schemes of Authorization pass to the application', async (t) => {
  const world = await startApi(t)

  assert.equal((await world.send('/maybe/x', { authorization: 'Basic amFuZTpwdw==' })).status, 200)
  assert.equal(world.seen[0]?.authorization, 'Basic amFuZTpwdw==')
  assert.equal(world.seen[0]?.['x-sub'], undefined)
})

test('A token that is not accepted gets 401, also where the rule lets everybody in', async (t) => {
  const world = await startApi(t)
  const { provider } = world
  const refused: readonly (readonly [why: string, token: string])[] = [
    ['another audience', world.token({ aud: 'https://other.example.com' })],
    ['the audience of the client', world.token({ aud: 'orders' })],
    ['another issuer', world.token({ iss: 'https://id.example.com' })],
    ['an ID Token', provider.idToken()],
    ['an ID Token for the API', provider.idToken({ aud: audience }, { typ: 'at+jwt' })],
    ['a Logout Token', provider.logoutToken({ aud: audience })],
    ['expired', world.token({ exp: 1 })],
    ['a wrong typ', world.token({}, { typ: 'JWT' })],
    ['crit', world.token({}, { crit: ['exp2'], exp2: 1 })],
    ['no token', 'garbage'],
  ]

  for (const [why, token] of refused)
    for (const path of ['/api/x', '/maybe/x']) {
      const response = await world.call(path, token)
      assert.equal(response.status, 401, why)
      assert.equal(response.challenge, 'Bearer error="invalid_token"', why)
      const problem = JSON.parse(response.body) as Record<string, unknown>
      assert.deepEqual([problem['error'], problem['sign_in']], ['invalid_token', undefined], why)
    }
  assert.equal(world.seen.length, 0)
  const [first] = auditsOf(world)
  assert.equal(first?.message, 'caller.refused')
  assert.equal(first?.fields['code'], 'ERR_TOKEN_INVALID')
})

test('A request with several tokens, or with a malformed one, is refused', async (t) => {
  const world = await startApi(t)
  const good = `Bearer ${world.token()}`

  for (const authorization of [
    [good, good],
    [good, 'Basic amFuZTpwdw=='],
    ['Basic amFuZTpwdw==', good],
    `${good}, ${good}`,
    `${good} x`,
    'Bearer',
    'Bearer ',
    'Bearer a b',
    `Bearer ${'x'.repeat(12_000)}`,
  ])
    assert.equal((await world.send('/api/x', { authorization })).status, 401, String(authorization).slice(0, 80))
  assert.equal((await world.send('/api/x', { authorization: good.replace('Bearer', 'bEARER') })).status, 200)
})

test('A token without the scope gets 403 insufficient_scope, and require works on the claims of the token', async (t) => {
  const world = await startApi(t)

  const response = await world.call('/write/x', world.token({ scope: 'read' }))

  assert.equal(response.status, 403)
  assert.equal(response.challenge, 'Bearer error="insufficient_scope", scope="write"')
  assert.equal((await world.call('/write/x', world.token({ scope: undefined, scp: ['write'] }))).status, 200)
  assert.equal((await world.call('/admins/x', world.token())).status, 403)
  assert.equal((await world.call('/admins/x', world.token({ groups: ['admins'] }))).status, 200)
  assert.deepEqual(
    auditsOf(world).map(({ message, fields }) => [message, fields['code'], fields['sub'], fields['client_id']]),
    [
      ['caller.refused', 'ERR_TOKEN_SCOPE', 'jane', 'cli'],
      ['caller.refused', 'ERR_CLAIM_ABSENT', 'jane', 'cli'],
    ],
  )
})

test('A token of a weaker authentication gets the challenge of RFC 9470', async (t) => {
  const world = await startApi(t)
  const at = (ago: number) => Date.UTC(2026, 0, 1) / 1000 - ago

  const response = await world.call('/strong/x', world.token({ acr: 'pwd', auth_time: at(0) }))

  assert.equal(response.status, 401)
  assert.equal(response.challenge, 'Bearer error="insufficient_user_authentication", acr_values="mfa", max_age="300"')
  assert.equal((await world.call('/strong/x', world.token({ acr: 'mfa', auth_time: at(0) }))).status, 200)
  assert.equal((await world.call('/strong/x', world.token({ acr: 'mfa', auth_time: at(400) }))).status, 401)
  assert.equal((await world.call('/strong/x', world.token({ acr: 'mfa', auth_time: at(0) * 1000 }))).status, 401)
})

test('A token is verified once, and its result is not used after exp', async (t) => {
  const world = await startApi(t)
  const token = world.token()
  assert.equal((await world.call('/api/x', token)).status, 200)
  // Without keys, only a kept result can be used.
  world.provider.publish()

  assert.equal((await world.call('/api/x', token)).status, 200)
  world.move(120_000 + 30_001)
  assert.equal((await world.call('/api/x', token)).status, 401)
})

test('A request with a token needs no cross-site check, because browsers do not send the token by themselves', async (t) => {
  const world = await startApi(t)
  const headers = {
    authorization: `Bearer ${world.token()}`,
    origin: 'https://spa.example.com',
    'sec-fetch-site': 'cross-site',
  }

  assert.equal((await world.send('/api/x', headers, 'POST')).status, 200)
})

test('The application gets no identity header of the client with a token', async (t) => {
  const world = await startApi(t)

  await world.send('/api/x', { authorization: `Bearer ${world.token()}`, 'X-Sub': 'root', x_sub: 'root' })

  assert.equal(world.seen[0]?.['x-sub'], 'jane')
  assert.equal(world.seen[0]?.['x_sub'], undefined)
})

test('After a Logout Token for its sid, a token that was issued before is refused', async (t) => {
  const world = await startApi(t)
  const [token, other] = [world.token(), world.token({ sid: 's-2' })]
  assert.equal((await world.call('/api/x', token)).status, 200)
  assert.equal((await world.call('/api/x', other)).status, 200)

  const { status } = await fetch(`${world.url}/.gatehouse/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: world.provider.logoutToken() }),
  })

  assert.equal(status, 200)
  assert.equal((await world.call('/api/x', token)).status, 401)
  assert.equal((await world.call('/api/x', world.token({ jti: 'never seen before' }))).status, 401)
  assert.equal((await world.call('/api/x', other)).status, 200)
  world.move(1000)
  assert.equal((await world.call('/api/x', world.token())).status, 200)
})

test('The application gets a signed identity of the caller, and the token where a header asks for it', async (t) => {
  const world = await startApi(t, {
    upstream: 'signed_identity: { claims: [client_id] }',
    headers: '{ Authorization: { bearer: access_token } }',
  })
  const token = world.token()

  await world.call('/api/x', token)

  assert.equal(world.seen[0]?.authorization, `Bearer ${token}`)
  const [, payload = ''] = String(world.seen[0]?.['x-gatehouse-identity']).split('.')
  const { sub, aud, client_id } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
  assert.deepEqual([sub, aud, client_id], ['jane', 'orders', 'cli'])
})

test('A rule that is only observed forwards the request, and the audit log says so', async (t) => {
  const world = await startApi(t)

  assert.equal((await world.call('/observed/x', world.token())).status, 200)

  const [event] = auditsOf(world)
  assert.deepEqual([event?.message, event?.fields['sub']], ['caller.would_be_refused', 'jane'])
})

test('The cookies of a person do not count beside a token', async (t) => {
  const world = await startApi(t, { upstream: 'logout: { cookies: [JSESSIONID] }' })

  const response = await world.send('/api/x', {
    authorization: `Bearer ${world.token()}`,
    cookie: 'gatehouse=x; JSESSIONID=of-somebody; theme=dark',
  })

  assert.equal(response.status, 200)
  assert.equal(response.headers['set-cookie'], undefined)
  assert.deepEqual([world.seen[0]?.['x-sub'], world.seen[0]?.cookie], ['jane', 'theme=dark'])
})

test('A flood of refused tokens is one audit event for each reason', async (t) => {
  const world = await startApi(t)

  for (let n = 0; n < 20; n += 1) await world.call('/api/x', world.token({ jti: String(n), exp: 1 }))
  await world.call('/write/x', world.token({ scope: 'read' }))

  assert.deepEqual(
    auditsOf(world).map(({ fields }) => fields['code']),
    ['ERR_TOKEN_INVALID', 'ERR_TOKEN_SCOPE'],
  )
  await world.gateway.stop()
  assert.deepEqual(
    auditsOf(world)
      .map(({ fields }) => fields['repeated'])
      .filter(Boolean),
    [19],
  )
})

test('A URL without a path is the same audience with its slash, and one with a path is not', async (t) => {
  const world = await startApi(t, { accessTokens: '{ audience: [https://a.example.com, https://b.example.com/x] }' })
  const statusFor = async (aud: string) => (await world.call('/api/x', world.token({ aud }))).status

  assert.equal(await statusFor('https://a.example.com'), 200)
  assert.equal(await statusFor('https://a.example.com/'), 200)
  assert.equal(await statusFor('https://a.example.com//'), 401)
  assert.equal(await statusFor('https://b.example.com/x'), 200)
  assert.equal(await statusFor('https://b.example.com/x/'), 401)
})
