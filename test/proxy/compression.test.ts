import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { test, type TestContext } from 'node:test'
import zlib from 'node:zlib'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'
import { httpUpstream } from './support.ts'

type Handle = Parameters<typeof httpUpstream>[1]

async function worldWith(t: TestContext, handle: Handle, compress = 'true', more = ''): Promise<World> {
  const { port } = await httpUpstream(t, handle)
  return startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `compress: ${compress}
    ${more}
    rules: [{ path: /private/* }, { path: /*, access: public }]`,
  })
}

interface Sent {
  readonly status: number | undefined
  readonly headers: IncomingMessage['headers']
  readonly content: Buffer
}

/** Sends a request without decoding the response. */
async function ask(url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<Sent> {
  const sent = request(url, { method, headers })
  sent.end()
  const [res] = (await once(sent, 'response')) as [IncomingMessage]
  const content = Buffer.concat(await res.toArray())
  return { status: res.statusCode, headers: res.headers, content }
}

const page = '<p>text</p>'.repeat(1_000)
const decoders = {
  br: zlib.brotliDecompressSync,
  gzip: zlib.gunzipSync,
  ...(typeof zlib.zstdDecompressSync === 'function' && { zstd: zlib.zstdDecompressSync }),
}
/** An application that responds with a page, with these fields. */
const pageWith =
  (fields: Readonly<Record<string, string>> = {}, status = 200): Handle =>
  (_req, res) =>
    void res.writeHead(status, { 'content-type': 'text/html', ...fields }).end(page)

for (const [coding, decode] of Object.entries(decoders))
  test(`A response is compressed with ${coding}, and its fields say so`, async (t) => {
    const { url } = await worldWith(t, pageWith({ etag: '"1"', vary: 'Origin', 'content-length': String(page.length) }))

    const { headers, content } = await ask(url, { 'accept-encoding': coding })

    assert.equal(decode(content).toString(), page)
    assert.ok(content.length < page.length / 10)
    assert.deepEqual([headers['content-encoding'], headers['etag']], [coding, 'W/"1"'])
    assert.equal(headers['vary'], 'Origin, Accept-Encoding')
    assert.equal(headers['content-length'], undefined)
  })

test('The client chooses the coding, and gets none without Accept-Encoding', async (t) => {
  const { url } = await worldWith(t, pageWith())
  const codingFor = async (accepted?: string) => {
    const { headers } = await ask(url, accepted === undefined ? {} : { 'accept-encoding': accepted })
    assert.equal(headers['vary'], 'Accept-Encoding')
    return headers['content-encoding']
  }

  assert.equal(await codingFor('gzip, br'), 'br')
  assert.equal(await codingFor('gzip, br;q=0.5'), 'gzip')
  assert.equal(await codingFor('br;q=0, *;q=0.1'), typeof zlib.createZstdCompress === 'function' ? 'zstd' : 'gzip')
  assert.equal(await codingFor('deflate'), undefined)
  assert.equal(await codingFor('identity'), undefined)
  assert.equal(await codingFor(), undefined)
})

for (const [why, handle] of [
  ['has a coding', pageWith({ 'content-encoding': 'x-own' })],
  ['says no-transform', pageWith({ 'cache-control': 'max-age=5, no-transform' })],
  ['is a range', pageWith({ 'content-range': 'bytes 0-10999/20000' }, 206)],
  ['is an event stream', pageWith({ 'content-type': 'text/event-stream' })],
  ['is an image', pageWith({ 'content-type': 'image/png' })],
  [
    'is short',
    (_req, res) => void res.writeHead(200, { 'content-type': 'text/html', 'content-length': '5' }).end('short'),
  ],
] satisfies readonly (readonly [string, Handle])[])
  test(`A response is not compressed when it ${why}`, async (t) => {
    const { url } = await worldWith(t, handle)

    const { headers, content } = await ask(url, { 'accept-encoding': 'gzip' })

    assert.notEqual(headers['content-encoding'], 'gzip')
    assert.match(content.toString(), /^(?:<p>text|short)/)
  })

test('Responses without content stay without: HEAD, 204 and 304', async (t) => {
  const { url } = await worldWith(t, (req, res) => {
    const status = req.url === '/none' ? 204 : req.url === '/same' ? 304 : 200
    res.writeHead(status, { 'content-type': 'text/html', etag: '"1"' }).end(status === 200 ? page : undefined)
  })
  const accepted = { 'accept-encoding': 'gzip' }

  for (const [path, method] of [
    ['/', 'HEAD'],
    ['/none', 'GET'],
    ['/same', 'GET'],
  ] as const) {
    const { headers, content } = await ask(url + path, accepted, method)
    assert.deepEqual([headers['content-encoding'], content.length, headers['etag']], [undefined, 0, '"1"'], path)
  }
})

test('Content that is empty is valid in its coding', async (t) => {
  const { url } = await worldWith(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/html' })
    res.flushHeaders()
    res.end()
  })

  const { headers, content } = await ask(url, { 'accept-encoding': 'gzip' })

  assert.equal(headers['content-encoding'], 'gzip')
  assert.equal(zlib.gunzipSync(content).length, 0)
})

test('With a cookie, credentials or a session, only content without secrets is compressed', async (t) => {
  const types: Readonly<Record<string, string>> = {
    html: 'text/html',
    json: 'application/json',
    txt: 'text/plain',
    xml: 'application/xml',
    css: 'text/css',
    js: 'text/javascript; charset=utf-8',
    svg: 'image/svg+xml',
    ttf: 'font/ttf',
  }
  const handle: Handle = (req, res) => {
    const { pathname, search } = new URL(req.url ?? '', 'http://a')
    const fields = {
      'content-type': types[pathname.split('.').at(-1) ?? ''] ?? '',
      ...(search !== '' && { 'cache-control': 'private' }),
    }
    res.writeHead(200, fields).end(page)
  }
  const { url, browser } = await worldWith(t, handle)
  const jane = browser()
  await jane.get(`${url}/private/a.html`)
  const cookie = `gatehouse=${jane.cookies.get('gatehouse')?.value}`
  const isCompressed = async (path: string, headers: Readonly<Record<string, string>>) =>
    (await ask(url + path, { 'accept-encoding': 'gzip', ...headers })).headers['content-encoding'] === 'gzip'

  for (const sender of [{ cookie: 'app=1' }, { authorization: 'Bearer x' }, { cookie }]) {
    for (const ending of ['html', 'json', 'txt', 'xml'])
      assert.equal(await isCompressed(`/a.${ending}`, sender), false, ending)
    for (const ending of ['css', 'js', 'svg', 'ttf'])
      assert.equal(await isCompressed(`/a.${ending}`, sender), true, ending)
    assert.equal(await isCompressed('/a.js?private', sender), false)
  }
  assert.equal(await isCompressed('/private/a.html', { cookie }), false)
  assert.equal(await isCompressed('/private/a.css', { cookie }), true)
  assert.equal(await isCompressed('/a.json', {}), true)
})

test('personal: true compresses pages of signed-in people too', async (t) => {
  const { url, browser } = await worldWith(t, pageWith(), '{ personal: true }')
  const jane = browser()
  await jane.get(`${url}/private/`)
  const cookie = `gatehouse=${jane.cookies.get('gatehouse')?.value}`

  const { headers, content } = await ask(`${url}/private/`, { 'accept-encoding': 'gzip', cookie })

  assert.equal(zlib.gunzipSync(content).toString(), page)
  assert.equal(headers['vary'], 'Accept-Encoding, Cookie')
})

test('A page that the application sends in parts arrives in parts', async (t) => {
  let finish = () => {}
  const { url } = await worldWith(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/html' }).write('first part')
    finish = () => void res.end('last part')
  })
  for (const [coding, decoder] of [
    ['gzip', zlib.createGunzip()],
    ['br', zlib.createBrotliDecompress()],
  ] as const) {
    const sent = request(url, { headers: { 'accept-encoding': coding } })
    sent.end()
    const [res] = (await once(sent, 'response')) as [IncomingMessage]
    let text = ''
    res.pipe(decoder).on('data', (part: Buffer) => (text += part.toString()))

    await until('the first part is here', () => text === 'first part')
    finish()
    await once(decoder, 'end')

    assert.equal(text, 'first partlast part')
  }
})

test('Addresses are replaced before the content is compressed', async (t) => {
  const link = '<a href="http://intranet.corp:8080/a">é</a>'.repeat(100)
  const handle: Handle = (_req, res) =>
    void res.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(link)
  const { url } = await worldWith(
    t,
    handle,
    'true',
    'rewrite_content: true\n    also_known_as: [http://intranet.corp:8080]',
  )

  const { content } = await ask(url, { 'accept-encoding': 'br' })

  assert.equal(zlib.brotliDecompressSync(content).toString(), link.replaceAll('http://intranet.corp:8080', url))
})

test('The application is read no faster than the client reads', async (t) => {
  const part = randomBytes(64 * 1024).toString('base64')
  const limit = 512 * 1024 * 1024
  let written = 0
  const { url } = await worldWith(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/html' })
    const more = () => {
      while (written < limit) {
        written += part.length
        if (!res.write(part)) return
      }
      res.end()
    }
    res.on('drain', more)
    more()
  })
  const sent = request(url, { headers: { 'accept-encoding': 'gzip' } })
  sent.end()
  const [res] = (await once(sent, 'response')) as [IncomingMessage]
  t.after(() => res.destroy())
  let before = -1
  let quiet = 0
  await until('the application waits', () => {
    quiet = before === written ? quiet + 1 : 0
    before = written
    return quiet === 50
  })

  assert.ok(written < limit / 4, `${written} bytes`)
})
