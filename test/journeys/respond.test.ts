import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { runReplica, startWorld } from '../support/world.ts'

const rules = `rules:
      - { path: /old/*, access: public, respond: { to: 'https://new.example.com/docs/*', status: 308, max_age: 1h } }
      - { path: /here/*, access: public, respond: { to: /* } }
      - { path: /start, access: public, respond: { to: '/orders?from=start' } }
      - { path: /form, access: public, respond: { to: /orders, status: 307 } }
      - { path: /robots.txt, access: public, respond: { text: "User-agent: *\\nDisallow: /\\n" } }
      - { path: /gone/*, access: public, respond: { status: 410, text: '<p>é</p>', headers: { Content-Type: text/html; charset=utf-8 } } }
      - { path: /empty, access: public, respond: { status: 204 } }
      - { path: /secret, respond: { text: for members, max_age: 1h } }
      - { path: /closed, require: { claim: fields.groups, any_of: [admins] }, respond: { text: for admins } }`

test('A redirect keeps what its path stands for and the query, and no application gets the request', async (t) => {
  const application = await startRecordingApplication(t)
  const { url, browser } = await startWorld(t, { upstream: application.url, upstreamSettings: rules })
  const locationOf = async (path: string) => (await browser().send(url + path)).headers['location']

  assert.equal(await locationOf('/old/a/b%20c?d=1&d=2'), 'https://new.example.com/docs/a/b%20c?d=1&d=2')
  assert.equal(await locationOf('/old'), 'https://new.example.com/docs/')
  assert.equal(await locationOf('/here/a?b'), '/a?b')
  assert.equal(await locationOf('/start?x=1'), '/orders?from=start')
  const moved = await browser().send(`${url}/old/a`)
  assert.deepEqual([moved.status, moved.body, moved.headers['cache-control']], [308, '', 'max-age=3600'])
  assert.deepEqual(application.seen, [])
})

test('A redirect with 302 is for GET and HEAD only; 307 and 308 are for all methods', async (t) => {
  const { url, browser } = await startWorld(t, { upstreamSettings: rules })
  const send = (path: string, method: string) => browser().send(url + path, { method })

  assert.equal((await send('/here/a', 'HEAD')).status, 302)
  const refused = await send('/here/a', 'POST')
  assert.deepEqual([refused.status, refused.headers['allow']], [405, 'GET, HEAD'])
  assert.deepEqual([(await send('/form', 'POST')).status, (await send('/old/a', 'DELETE')).status], [307, 308])
})

test('No request chooses the host, the fields or the content of a redirect', async (t) => {
  const { url } = await startWorld(t, { upstreamSettings: rules })
  const port = Number(new URL(url).port)
  const rests = [
    ...[
      '//evil.example',
      '/%2fevil.example',
      '\\evil.example',
      '%5cevil.example',
      '/%5c/evil.example',
      '@evil.example',
    ],
    ...[
      '.evil.example',
      '%2e%2e/%2e%2e/',
      '../../evil',
      '%00',
      '%0d%0aSet-Cookie:%20a=b',
      '%E5%98%8D%E5%98%8ASet-Cookie:a',
    ],
    ...[
      '?\\evil',
      '%09//evil.example',
      ';@evil.example',
      ':80@evil.example',
      '%252fevil.example',
      '//',
      '/./',
      '%23@evil',
    ],
  ]
  for (const prefix of ['/here', '/here/', '/old', '/old/'])
    for (const rest of rests) {
      const { text } = await exchangeRaw(
        port,
        `GET ${prefix}${rest} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`,
      )
      const location = /^location: (.*)\r$/im.exec(text)?.[1]
      assert.doesNotMatch(text.split('\r\n\r\n')[0] ?? '', /^set-cookie/im)
      if (location === undefined || location.startsWith('/.gatehouse/')) continue
      const expected = prefix.startsWith('/old') ? 'https://new.example.com' : url
      assert.equal(new URL(location, url).origin, expected, `${prefix}${rest} led to ${location}`)
    }
})

test('Fixed content has its status, type and length, and is not sniffed', async (t) => {
  const { url, browser } = await startWorld(t, { upstreamSettings: rules })

  const robots = await browser().send(`${url}/robots.txt`)
  assert.deepEqual([robots.status, robots.body], [200, 'User-agent: *\nDisallow: /\n'])
  const { headers } = robots
  assert.equal(headers['content-type'], 'text/plain; charset=utf-8')
  assert.deepEqual([headers['x-content-type-options'], headers['cache-control']], ['nosniff', 'no-cache'])
  const gone = await browser().send(`${url}/gone/a`, { method: 'POST', body: 'a=b' })
  assert.deepEqual(
    [gone.status, gone.body, gone.headers['content-type']],
    [410, '<p>é</p>', 'text/html; charset=utf-8'],
  )
  const head = await browser().send(`${url}/gone/a`, { method: 'HEAD' })
  assert.deepEqual([head.headers['content-length'], head.body], ['9', ''])
  const empty = await browser().send(`${url}/empty`)
  assert.deepEqual(
    [empty.status, empty.headers['content-length'], empty.headers['content-type']],
    [204, undefined, undefined],
  )
})

test('A response of the gateway obeys the access of its rule, and no shared cache stores it', async (t) => {
  const { url, browser, replicas } = await startWorld(t, { upstreamSettings: rules })
  const jane = browser()

  assert.match(String((await jane.send(`${url}/secret`)).headers['location']), /sign-in/)
  const read = await jane.get(`${url}/secret`)
  assert.deepEqual([read.status, read.body], [200, 'for members'])
  assert.deepEqual([read.headers['cache-control'], read.headers['vary']], ['private, max-age=3600', 'Cookie'])
  const denied = await browser('samir').get(`${url}/closed`)
  assert.equal(denied.status, 403)
  assert.doesNotMatch(denied.body, /for admins/)
  assert.ok(replicas[0]?.access.some(({ path, session }) => path === '/secret' && session !== undefined))
})

test('A WebSocket to a rule with respond is refused', async (t) => {
  const { url } = await startWorld(t, { upstreamSettings: rules })
  const upgrade =
    'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13'

  const { statuses } = await exchangeRaw(
    Number(new URL(url).port),
    `GET /robots.txt HTTP/1.1\r\nHost: 127.0.0.1\r\n${upgrade}\r\n\r\n`,
  )

  assert.deepEqual(statuses, [404])
})

test('An upstream may consist of responses only, and their content may be a file', async (t) => {
  const world = await startWorld(t)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-respond-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'icon.png'), Buffer.from([0x89, 0x50, 0xff, 0]))
  const yaml = `version: 1
listen: 127.0.0.1:0
external_url: http://127.0.0.1:1
provider: { issuer: ${world.provider.issuer}, client_id: orders, client_secret: { env: CLIENT_SECRET } }
session: { keys: [{ env: SESSION_KEY }], store: memory }
upstreams:
  notes:
    rules:
      - { path: /icon.png, access: public, respond: { file: ${join(folder, 'icon.png')} } }
`
  const { url } = await runReplica(t, yaml, { now: () => Date.now() })

  const icon = await fetch(`${url}/icon.png`)
  assert.deepEqual([...Buffer.from(await icon.arrayBuffer())], [0x89, 0x50, 0xff, 0])
  assert.equal(icon.headers.get('content-type'), 'image/png')
  assert.equal((await fetch(`${url}/other`, { redirect: 'manual' })).status, 404)
})

test('Defaults for header fields apply to pages of the application and to responses of the gateway', async (t) => {
  const { url, browser } = await startWorld(t, {
    upstreamSettings: `response_headers: { frame_ancestors: [self], referrer_policy: origin, permissions_policy: camera=() }
    rules:
      - { path: /text, access: public, respond: { text: a, headers: { referrer-policy: no-referrer } } }`,
  })
  const jane = browser()
  const page = await jane.get(`${url}/echo`)
  const text = await jane.send(`${url}/text`)

  const policies = ({ headers }: typeof page) =>
    ['content-security-policy', 'referrer-policy', 'permissions-policy'].map((name) => headers[name])
  assert.deepEqual(policies(page), ["frame-ancestors 'self'", 'origin', 'camera=()'])
  assert.deepEqual(policies(text), ["frame-ancestors 'self'", 'no-referrer', 'camera=()'])
})
