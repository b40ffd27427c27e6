import assert from 'node:assert/strict'
import { test } from 'node:test'
import { page, startBed } from '../advisories/support.ts'
import { startWorld } from '../support/world.ts'

const forged = ['Authorization: Basic YWRtaW46YWRtaW4=', 'authorization: Bearer forged', 'X-Role: admin']

test('The application gets the access token of the session, and never the Authorization of the client', async (t) => {
  const rules =
    '[{ path: /open/*, access: public }, { path: /*, headers: { Authorization: { bearer: access_token }, X-Role: { value: user } } }]'
  const bed = await startBed(t, { rules })
  const cookie = await bed.signIn({ sub: 'jane' })

  await bed.ask('/', { ...page, cookie, headers: [...(page.headers ?? []), ...forged] })
  const signedIn = bed.seen.at(-1)?.headers
  await bed.ask('/open/a', { ...page, headers: [...(page.headers ?? []), ...forged] })
  const anonymous = bed.seen.at(-1)

  assert.match(String(signedIn?.['authorization']), /^Bearer [\w.~+/-]+=*$/)
  assert.doesNotMatch(String(signedIn?.['authorization']), /forged/)
  assert.equal(signedIn?.['x-role'], 'user')
  assert.equal(anonymous?.url, '/open/a')
  assert.equal(anonymous?.headers['authorization'], undefined)
  assert.equal(anonymous?.headers['x-role'], undefined)
  assert.ok(!JSON.stringify(bed.log).includes(String(signedIn?.['authorization']).slice(7)), 'the log shows the token')
})

test('After a refresh the application gets the new access token', async (t) => {
  const world = await startWorld(t, { headers: 'Authorization: { bearer: access_token }' })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 10))
  const jane = world.browser()
  const tokenIn = ({ body }: { readonly body: string }) => /Bearer ([\w.~+/-]+=*)/.exec(body)?.[1]
  const first = tokenIn(await jane.get(`${world.url}/echo`))
  world.moveClock(11_000)

  const second = tokenIn(await jane.fetch(`${world.url}/echo`))

  assert.ok(first !== undefined && second !== undefined)
  assert.notEqual(second, first)
})
