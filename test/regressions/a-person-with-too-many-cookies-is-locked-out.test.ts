import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { issueCertificates } from '../support/certificates.ts'
import { startWorld, type World } from '../support/world.ts'

const { server: files } = issueCertificates()
const portOf = (world: World) => world.replicas[0]?.gateway.address.port ?? 0

function startGateway(t: TestContext, isTls: boolean, plainPath = true): Promise<World> {
  const tls = isTls ? `, tls: { cert_file: ${files.cert}, key_file: ${files.key} }` : ''
  return startWorld(t, { listen: (address) => `{ address: "${address}", plain_path: ${plainPath}${tls} }` })
}

/** Sends the parts, one after the other, and returns all bytes of the response. */
async function exchange(world: World, isTls: boolean, parts: readonly string[]): Promise<string> {
  const target = { port: portOf(world), host: '127.0.0.1' }
  const socket: Socket = isTls ? connectTls({ ...target, rejectUnauthorized: false }) : connect(target)
  socket.on('error', () => {}).setNoDelay()
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString('utf8')))
  for (const part of parts) await new Promise((resolve) => socket.write(part, 'latin1', resolve))
  await new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
  socket.destroy()
  return text
}

const browser = (line: string, ...fields: readonly string[]) =>
  [`${line} HTTP/1.1`, 'Host: h', 'Accept: text/html', 'Accept-Language: de', ...fields, ''].join('\r\n')
const cookies = `Cookie: ${'a=b; '.repeat(4000)}`
const moreCookies = `${'a=b; '.repeat(8000)}\r\n\r\n`
const sameOrigin = ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document']

const linesOf = (world: World) =>
  (world.replicas[0]?.log ?? []).filter(({ message }) => message === 'request.unreadable').map(({ fields }) => fields)
const countOf = (world: World, reason: string) =>
  world.replicas[0]?.metrics
    .collect()
    .find(({ name }) => name === 'gatehouse_unreadable_requests_total')
    ?.cells.find(({ labels }) => labels.includes(reason))?.values[0]

for (const [over, isTls, plainPath] of [
  ['http', false, true],
  ['http, read by Node.js', false, false],
  ['https', true, true],
] as const)
  test(`A browser with too many cookies gets a page that offers to remove them, over ${over}`, async (t) => {
    const world = await startGateway(t, isTls, plainPath)
    for (const path of ['/orders', '/.gatehouse/sign-out']) {
      const page = await exchange(world, isTls, [browser(`GET ${path}`) + cookies, moreCookies])
      assert.match(page, /^HTTP\/1\.1 431 /)
      assert.match(page, /<html lang="de"/)
      assert.match(page, /<form[^>]*action="\/\.gatehouse\/clear-cookies"/)
    }
    const cleared = (site: readonly string[]) =>
      exchange(world, isTls, [browser('POST /.gatehouse/clear-cookies', ...site) + cookies, moreCookies])
    assert.match(await cleared(sameOrigin), /^HTTP\/1\.1 200 [^]*\r\nClear-Site-Data: "cookies"\r\n/)
    assert.doesNotMatch(await cleared(['Sec-Fetch-Site: cross-site']), /Clear-Site-Data/)
    assert.match(
      await exchange(world, isTls, [`GET /orders HTTP/1.1\r\nHost: h\r\n${cookies}`, moreCookies]),
      /^HTTP\/1\.1 431 [^]*application\/problem\+json/,
    )
    const [line, ...others] = linesOf(world)
    assert.deepEqual([line?.['reason'], line?.['client'], others], ['header_size', '127.0.0.1', []])
    assert.match(String(line?.['hint']), /limits\.header_size.*: remove them in the browser.*or raise the limit/)
    assert.equal(countOf(world, 'header_size'), 5)
  })

test('A request that the parser rejects is counted and logged, at most once in ten seconds', async (t) => {
  const world = await startGateway(t, false)
  const send = () => exchange(world, false, ['GET / HTTP/1.1\r\nHost: h\r\nbad field\r\n\r\n'])
  for (let times = 0; times < 3; times += 1) assert.match(await send(), /^HTTP\/1\.1 400 /)
  world.moveClock(10_000)
  await send()
  assert.deepEqual(
    linesOf(world).map(({ reason, count }) => [reason, count]),
    [
      ['malformed', 1],
      ['malformed', 3],
    ],
  )
  assert.equal(countOf(world, 'malformed'), 4)
})

for (const plainPath of [true, false])
  test(`A head that is never completed gets 408 and a line, and silence gets 408 alone, plain_path: ${plainPath}`, async (t) => {
    const world = await startWorld(t, {
      listen: (address) => `{ address: "${address}", plain_path: ${plainPath} }`,
      settings: 'limits: { headers_timeout: 1s }',
    })
    assert.match(await exchange(world, false, []), /^(?:HTTP\/1\.1 408 |$)/)
    assert.equal(countOf(world, 'incomplete'), 0)
    assert.match(await exchange(world, false, ['GET / HT']), /^HTTP\/1\.1 408 /)
    assert.deepEqual([linesOf(world)[0]?.['reason'], countOf(world, 'incomplete')], ['incomplete', 1])
  })

test('A client of http at a port of https gets 400 and a sentence, and the log has a hint', async (t) => {
  const world = await startGateway(t, true)
  const response = await exchange(world, false, ['GET / HTTP/1.1\r\nHost: h\r\n\r\n'])
  assert.match(response, /^HTTP\/1\.1 400 [^]*This port serves https only\./)
  assert.deepEqual([linesOf(world)[0]?.['reason'], countOf(world, 'http_on_tls')], ['http_on_tls', 1])
})

test('The log names a client of https at a port of http', async (t) => {
  const world = await startGateway(t, false)
  await exchange(world, true, []).catch(() => {})
  assert.deepEqual([linesOf(world)[0]?.['reason'], countOf(world, 'tls_on_http')], ['tls_on_http', 1])
})
