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

/**
 * Every request that could bring an `Authorization` of the client to an application that gets one.
 */
const attempts: readonly (readonly [what: string, fields: readonly string[], body?: string])[] = [
  ['the field', ['Authorization: Bearer forged']],
  ['the field twice', ['Authorization: Bearer forged', 'AUTHORIZATION: Basic forged']],
  [
    'other spellings',
    ['Authorization_: forged', '-Authorization: forged', 'Authorization-: forged', '.authorization: forged'],
  ],
  ['Connection removes the field', ['Connection: close, authorization', 'Authorization: Bearer forged']],
  [
    'a trailer',
    ['Transfer-Encoding: chunked', 'Trailer: Authorization'],
    '1\r\nx\r\n0\r\nAuthorization: Bearer forged\r\n\r\n',
  ],
  [
    'an upgrade',
    [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Authorization: Bearer forged',
    ],
  ],
]

for (const [what, fields, body] of attempts)
  test(`The Authorization of a client does not stand in for that of the gateway: ${what}`, async (t) => {
    const rules =
      '[{ path: /open/*, access: public }, { path: /maybe/*, access: optional }, { path: /own/*, headers: { Authorization: { basic: { user: email, password: { env: CLIENT_SECRET } } } } }]'
    const bed = await startBed(t, { rules })
    const withEmail = await bed.signIn({ sub: 'jane', email: 'jane@example.com' })
    const withoutEmail = await bed.signIn({ sub: 'joe' })
    const own = `Basic ${Buffer.from('jane@example.com:correct horse battery staple').toString('base64')}`
    const requests = [
      ['/own/a', withEmail, own],
      ['/own/a', withoutEmail, undefined],
      ['/a', withEmail, undefined],
      ['/maybe/a', '', undefined],
      ['/open/a', withEmail, undefined],
    ] as const

    for (const [path, cookie, expected] of requests) {
      const before = bed.seen.length
      const close = fields.some((field) => field.startsWith('Connection:')) ? [] : ['Connection: close']
      const method = body === undefined ? 'GET' : 'POST'
      const origin = bed.origin.replace('http://', '')
      const lines = [`${method} ${path} HTTP/1.1`, `Host: ${origin}`, `Cookie: ${cookie}`, ...close, ...fields]
      await bed.raw(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`)

      for (const { headers, rawHeaders, rawTrailers } of bed.seen.slice(before)) {
        assert.equal(headers['authorization'], expected, `${path} ${cookie}`)
        assert.ok(![...rawHeaders, ...rawTrailers()].some((text) => text.includes('forged')), rawHeaders.join())
      }
      if (what !== 'an upgrade') assert.equal(bed.seen.length, before + 1, path)
    }
  })
