import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { request } from 'undici'
import { type ApiWorld, startApi } from '../support/api-world.ts'
import { bearer, now, sendJson } from '../support/signing-provider.ts'

type Cookies = Map<string, string>

const field = (cookies: Cookies) => [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')

/** Opens a page with the cookies of a browser, which are changed, and signs a person in for it. */
async function signIn(world: ApiWorld, cookies: Cookies, path: string, claims: Record<string, unknown> = {}) {
  const { url, provider, gateway } = world
  const get = async (to: string) => {
    const response = await request(new URL(to, url), { headers: { cookie: field(cookies), accept: 'text/html' } })
    await response.body.dump()
    for (const line of [response.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/max-age=0/i.test(line)) cookies.delete(name)
      else cookies.set(name, value)
    }
    return { status: response.statusCode, location: String(response.headers.location) }
  }
  const atProvider = new URL((await get((await get(path)).location)).location)
  const [nonce, state] = ['nonce', 'state'].map((name) => atProvider.searchParams.get(name) ?? '')
  // openid-client has the clock of this machine, and not that of the gateway.
  const times = { exp: Math.floor(Date.now() / 1000) + 3600, auth_time: now / 1000 }
  const id_token = provider.idToken({ nonce, ...times, acr: 'mfa', ...claims })
  provider.respond('/userinfo', (_req, res) => sendJson(res, { sub: claims['sub'] ?? 'jane' }))
  provider.respond('/token', (_req, res) => sendJson(res, { ...bearer(), id_token }))
  await get(`/.gatehouse/callback?${new URLSearchParams({ code: 'c', state: state ?? '' })}`)
  assert.equal((await get(path)).status, 200, JSON.stringify(gateway.log))
}

/** A person is signed in, and has an access token with the same `sid`. */
async function start(t: TestContext) {
  const world = await startApi(t)
  const cookies: Cookies = new Map()
  await signIn(world, cookies, '/api/x', { acr: 'pwd' })
  const token = world.token()
  assert.equal((await world.call('/api/x', token)).status, 200)
  const again = (claims?: Record<string, unknown>) => signIn(world, cookies, '/strong/x', claims)
  return { world, cookies, again, token }
}

test('After a new sign-in of the same person, the access tokens of the sid are still accepted', async (t) => {
  const { world, again, token } = await start(t)

  await again()

  assert.ok(world.gateway.log.some(({ fields }) => fields['by'] === 'new_sign_in'))
  assert.equal((await world.call('/api/x', token)).status, 200)
  assert.equal((await world.call('/api/x', world.token({ jti: 'never seen before' }))).status, 200)
})

test('After a sign-in of another person in the browser, they are refused', async (t) => {
  const { world, again, token } = await start(t)

  await again({ sub: 'john', sid: 's-2' })

  assert.equal((await world.call('/api/x', token)).status, 401)
})

test('After a sign-out, they are refused', async (t) => {
  const { world, cookies, token } = await start(t)

  await world.send('/.gatehouse/sign-out', { cookie: field(cookies), origin: world.url }, 'POST')

  assert.equal((await world.call('/api/x', token)).status, 401)
})
