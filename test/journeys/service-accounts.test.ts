import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { before, test, type TestContext } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { hashSecret } from '../../src/core/scrypt-hash.ts'
import { type ApiWorld, startApi } from '../support/api-world.ts'
import { auditsOf } from '../support/audits.ts'
import { folderWith } from '../support/command-line.ts'
import { secrets } from '../support/world.ts'

const secret = 'correct horse battery: staple'
const cheap = { ln: 14, r: 8, p: 1 }
const rules = `[
      { path: /export/*, service_accounts: true },
      { path: /one/*, service_accounts: [restore] },
      { path: /both/*, service_accounts: true, access_tokens: true },
      { path: /ops/*, service_accounts: true, require: { claim: groups, any_of: [ops] } },
      { path: /maybe/*, access: optional, service_accounts: true } ]`

let line: string
before(async () => {
  line = await hashSecret(secret, cheap)
})

interface AccountWorld extends ApiWorld {
  readonly file: string
  basic(name: string, secret: string): string
  as(path: string, name?: string, secret?: string, headers?: Record<string, string>): ReturnType<ApiWorld['send']>
}

async function start(t: TestContext, upstream = ''): Promise<AccountWorld> {
  const folder = folderWith(t, { 'accounts.txt': `# of the night\nbackup:${line}\nrestore:${line}\n` })
  const file = join(folder, 'accounts.txt')
  const world = await startApi(t, {
    rules,
    headers: '{ X-Sub: sub, X-Client: client_id, X-Groups: groups }',
    upstream: `service_accounts: { file: "${file}", claims: { backup: { groups: [ops, night] } } }\n    ${upstream}`,
  })
  const basic = (name: string, given: string) => `Basic ${Buffer.from(`${name}:${given}`).toString('base64')}`
  return {
    ...world,
    ...{ file, basic },
    as: (path, name = 'backup', given = secret, headers = {}) =>
      world.send(path, { authorization: basic(name, given), ...headers }),
  }
}

test('A service account reaches the application with its claims, without its secret', async (t) => {
  const world = await start(t)

  const response = await world.as('/export/x')

  assert.equal(response.status, 200)
  const [fields] = world.seen
  assert.deepEqual(
    [fields?.['x-sub'], fields?.['x-client'], fields?.['x-groups']],
    ['service-account/backup', 'backup', 'ops,night'],
  )
  assert.equal(fields?.authorization, undefined)
  assert.equal(world.gateway.access.at(-1)?.['caller'], 'service_account')
  const written = JSON.stringify([world.gateway.log, world.gateway.access])
  for (const text of [secret, world.basic('backup', secret).slice(6), line]) assert.ok(!written.includes(text))
  // Its requirements are those of a person.
  assert.equal((await world.as('/ops/x')).status, 200)
  assert.equal((await world.as('/ops/x', 'restore')).status, 403)
  assert.equal((await world.as('/one/x', 'restore')).status, 200)
  assert.equal((await world.as('/one/x')).status, 403)
  assert.deepEqual(
    auditsOf(world).map(({ message, fields }) => [message, fields['code'], fields['account']]),
    [
      ['caller.refused', 'ERR_CLAIM_ABSENT', 'restore'],
      ['caller.refused', 'ERR_FORBIDDEN', 'backup'],
    ],
  )
})

test('Without credentials, a program is offered Basic, and a browser never', async (t) => {
  const world = await start(t)
  const basic = 'Basic realm="account or key", charset="UTF-8"'

  assert.equal((await world.send('/export/x')).challenge, `${basic}, Gatehouse realm="sign-in"`)
  assert.equal(
    (await world.send('/both/x')).challenge,
    `Bearer realm="access-token", ${basic}, Gatehouse realm="sign-in"`,
  )
  for (const headers of [
    { 'sec-fetch-site': 'same-origin' },
    { cookie: 'theme=dark' },
    { origin: 'https://spa.example.com' },
  ]) {
    assert.equal((await world.send('/export/x', headers)).challenge, 'Gatehouse realm="sign-in"')
    assert.equal((await world.as('/export/x', 'backup', 'wrong', headers)).challenge, 'Gatehouse realm="sign-in"')
  }
  assert.equal((await world.send('/export/x', { accept: 'text/html' })).status, 303)
})

test('A wrong secret, an unknown name and malformed credentials get 401, also where everybody may enter', async (t) => {
  const world = await start(t)
  const base64 = (text: string | Buffer) => `Basic ${Buffer.from(text).toString('base64')}`
  const good = world.basic('backup', secret)
  const refused: readonly (readonly [why: string, authorization: string | string[]])[] = [
    ['a wrong secret', world.basic('backup', 'wrong')],
    ['an unknown name', world.basic('nobody', secret)],
    ['another letter case', world.basic('Backup', secret)],
    ['no colon', base64('backup')],
    ['no name', base64(`:${secret}`)],
    ['NUL', base64(`backup:${secret}\0`)],
    ['a line break', base64(`backup:${secret}\n`)],
    ['DEL', base64(`backup:${secret}\x7f`)],
    ['Latin-1', base64(Buffer.from('backup:\xe4', 'latin1'))],
    ['a byte order mark', base64(`\ufeffbackup:${secret}`)],
    ['no base64', 'Basic backup:secret'],
    ['base64url', `Basic ${Buffer.from('backup:\u00ff\u00ff\u00ff?').toString('base64url')}_-`],
    ['no credentials', 'Basic'],
    ['no credentials, with a space', 'Basic '],
    ['two fields', [good, good]],
    ['two in one field', `${good}, ${good}`],
    ['with a parameter', `${good} realm=x`],
    ['Basic and Bearer', [good, `Bearer ${world.token()}`]],
    ['Bearer and Basic', [`Bearer ${world.token()}`, good]],
    ['a long secret', world.basic('backup', 'x'.repeat(4000))],
  ]

  for (const [why, authorization] of refused) {
    world.move(60_000)
    for (const path of ['/both/x', '/maybe/x'])
      assert.equal((await world.send(path, { authorization })).status, 401, `${why} ${path}`)
  }
  assert.equal(world.seen.length, 0)
  const unknown = auditsOf(world).filter(({ fields }) => String(fields['reason']).includes('no service account'))
  assert.equal(unknown[0]?.fields['account'], undefined)
})

test('A page of another site cannot use a secret that a browser remembers', async (t) => {
  const world = await start(t)
  const posted = (headers: Record<string, string>) =>
    fetch(`${world.url}/export/x`, {
      method: 'POST',
      headers: { authorization: world.basic('backup', secret), ...headers },
      body: 'x',
    })

  assert.equal((await posted({ origin: 'https://evil.example' })).status, 403)
  assert.equal((await posted({ origin: world.url })).status, 200)
  assert.equal((await posted({})).status, 200)
  assert.equal(world.seen.length, 2)
  assert.equal(auditsOf(world).at(-1)?.fields['code'], 'ERR_CROSS_SITE')
})

test('Unusual but valid spellings are accepted', async (t) => {
  const world = await start(t)
  const good = world.basic('backup', secret)

  for (const authorization of [good.replace('Basic', 'bASIC'), good.replace(' ', '   '), `${good} `])
    assert.equal((await world.send('/export/x', { authorization })).status, 200, authorization)
})

test('On other rules, Authorization passes to the application, and only the session counts', async (t) => {
  const world = await start(t, 'cache: private')

  assert.equal((await world.as('/elsewhere')).status, 401)
  assert.equal(world.seen.length, 0)
})

test('The cookies of a person do not count beside a service account', async (t) => {
  const world = await start(t, 'logout: { cookies: [JSESSIONID] }')

  const response = await world.as('/export/x', 'backup', secret, { cookie: 'gatehouse=x; JSESSIONID=y; theme=dark' })

  assert.equal(response.status, 200)
  assert.deepEqual([world.seen[0]?.['x-sub'], world.seen[0]?.cookie], ['service-account/backup', 'theme=dark'])
  assert.equal(response.headers['set-cookie'], undefined)
})

test('Too many wrong secrets get 429 with Retry-After, and do not lock out a client that knew the secret', async (t) => {
  const world = await start(t)
  assert.equal((await world.as('/export/x')).status, 200)

  const statuses = await Promise.all([...Array(12).keys()].map((n) => world.as('/export/x', 'backup', `wrong ${n}`)))

  assert.equal(statuses.filter(({ status }) => status === 401).length, 10)
  const [limited] = statuses.filter(({ status }) => status === 429)
  assert.match(String(limited?.headers['retry-after']), /^[1-6]$/)
  assert.equal((await world.as('/export/x')).status, 200)
  // An unknown name has the same limit.
  assert.equal((await world.as('/export/x', 'nobody')).status, 429)
  world.move(60_000)
  assert.equal((await world.as('/export/x', 'nobody')).status, 401)
  const combined = auditsOf(world).filter(({ fields }) => fields['code'] === 'ERR_ACCOUNT_INVALID')
  assert.ok(combined.length <= 2, 'equal refusals are combined')
})

test('After its line is removed, the account has no access any more; a new secret works beside the old one', async (t) => {
  const world = await start(t)
  assert.equal((await world.as('/export/x')).status, 200)
  const reload = async (text: string) => {
    writeFileSync(world.file, text)
    const loaded = loadConfig(world.gateway.file, secrets)
    assert.ok(loaded.ok)
    await world.gateway.gateway.reload(loaded.config)
  }

  await reload(`backup:${line}\nbackup:${await hashSecret('another secret', cheap)}\n`)
  assert.equal((await world.as('/export/x', 'backup', 'another secret')).status, 200)
  assert.equal((await world.as('/export/x')).status, 200)
  await reload('')

  assert.equal((await world.as('/export/x')).status, 401)
})

/** Sends a request as these bytes, and resolves to the response. */
async function raw({ url }: ApiWorld, ...lines: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let received = ''
  socket.setEncoding('latin1').on('data', (text: string) => (received += text))
  socket.on('error', () => {})
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  await once(socket, 'close')
  return received
}

test('Unusual requests with credentials are decided in the same way', async (t) => {
  const world = await start(t)
  const { host } = new URL(world.url)
  const [good, wrong] = [world.basic('backup', secret), world.basic('backup', 'wrong')]
  const get = 'GET /export/x HTTP/1.1'
  const [to, close] = [`Host: ${host}`, 'Connection: close']

  assert.match(await raw(world, get.replace('1.1', '1.0'), to, `Authorization: ${good}`), /^HTTP\/1\.1 200/)
  assert.match(await raw(world, get.replace('1.1', '1.0'), to, `Authorization: ${wrong}`), /^HTTP\/1\.1 401/)
  assert.match(await raw(world, get, to, close, `AUTHORIZATION:\t${good}`), /^HTTP\/1\.1 200/)
  for (const refused of [
    [`Authorization: ${good.replace(' ', '\t')}`],
    [`Authorization: ${good}`, 'Authorization:'],
    [`Authorization: ${good}`, `Authorization: ${wrong}`],
    [`Authorization: Digest username="x, Basic y"`],
    [`Authorization: Basic`, ` ${good.slice(6)}`],
    [`Authorization: Basic ${'A'.repeat(1024 * 1024)}`],
    [`Authorization: ${good}\0`],
  ])
    assert.match(await raw(world, get, to, close, ...refused), /^HTTP\/1\.1 4|^$/, refused.join().slice(0, 60))
  assert.equal(world.seen.length, 2)
  // Other spellings of the name of the field do not count, and do not reach the application as
  // credentials.
  assert.match(await raw(world, get, to, close, `Authorization : ${good}`), /^HTTP\/1\.1 400/)
  const upgrade = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  ]
  const refused = await raw(world, get, to, ...upgrade, `Authorization: ${wrong}`)
  assert.match(refused, /^HTTP\/1\.1 401[^]*WWW-Authenticate: Basic realm="account or key"/i)
  assert.ok(!JSON.stringify([world.gateway.log, world.gateway.access]).includes(good.slice(6)))
})
