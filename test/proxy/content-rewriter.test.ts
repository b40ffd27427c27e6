import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test, type TestContext } from 'node:test'
import zlib from 'node:zlib'
import { startWorld, type World } from '../support/world.ts'
import { httpUpstream } from './support.ts'

interface RewrittenResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly content: Buffer
}

/** Sends a request without decoding the response. */
function ask(url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<RewrittenResponse> {
  return new Promise((resolve, reject) => {
    request(url, { method, headers }, (res) => {
      const parts: Buffer[] = []
      res.on('data', (part: Buffer) => parts.push(part))
      res.on('error', reject)
      res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, content: Buffer.concat(parts) }))
    })
      .on('error', reject)
      .end()
  })
}

type Handle = Parameters<typeof httpUpstream>[1]

/** An application that knows itself as http://intranet.corp:8080. */
async function worldWith(t: TestContext, handle: Handle): Promise<World> {
  const { port } = await httpUpstream(t, handle)
  return startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `rewrite_content: true
    also_known_as: [http://intranet.corp:8080]
    rules: [{ path: /*, access: public }]`,
  })
}

const link = '<a href="http://intranet.corp:8080/a">é</a>'
const page = link.repeat(5_000)
const html = { 'content-type': 'text/html; charset=utf-8' }
const linkFor = ({ url }: World) => link.replace('http://intranet.corp:8080', url)

const codings = {
  gzip: [zlib.gzipSync, zlib.gunzipSync],
  deflate: [zlib.deflateSync, zlib.inflateSync],
  br: [zlib.brotliCompressSync, zlib.brotliDecompressSync],
  ...(typeof zlib.zstdCompressSync === 'function' && { zstd: [zlib.zstdCompressSync, zlib.zstdDecompressSync] }),
} as const

test('Addresses in a page are replaced, and fields that would be wrong are removed', async (t) => {
  const world = await worldWith(t, (_req, res) =>
    res
      .writeHead(200, {
        ...html,
        'content-length': Buffer.byteLength(page),
        etag: '"1"',
        'accept-ranges': 'bytes',
        digest: 'x',
      })
      .end(page),
  )

  const { headers, content } = await ask(world.url)

  assert.equal(content.toString(), linkFor(world).repeat(5_000))
  assert.equal(headers['etag'], 'W/"1"')
  for (const name of ['content-length', 'accept-ranges', 'digest']) assert.equal(headers[name], undefined, name)
})

for (const [coding, [encode, decode]] of Object.entries(codings))
  test(`Content with the coding ${coding} is decoded, and encoded again`, async (t) => {
    const encoded = encode(page)
    const world = await worldWith(t, (_req, res) => {
      res.writeHead(200, { ...html, 'content-encoding': coding })
      // In small parts, so that the coding does not end with a part.
      for (let at = 0; at < encoded.length; at += 100) res.write(encoded.subarray(at, at + 100))
      res.end()
    })

    const { headers, content } = await ask(world.url)

    assert.equal(headers['content-encoding'], coding)
    assert.equal(decode(content).toString(), linkFor(world).repeat(5_000))
  })

test('The application is asked only for codings that the gateway can decode', async (t) => {
  const world = await worldWith(t, (req, res) => {
    const { 'accept-encoding': coding, 'x-one': one, 'x-two': two, 'x-three': three } = req.headers
    res.end(JSON.stringify([coding, one, two, three]))
  })

  const known = Object.keys(codings).join(', ')
  // Names and values of all fields are in one list.
  const others = { 'x-one': 'accept-encoding', 'x-two': 'accept-encoding', 'x-three': 'kept' }
  const received = async (coding: string) =>
    JSON.parse((await ask(world.url, { 'accept-encoding': coding, ...others })).content.toString()) as unknown
  assert.deepEqual(await received(`${known}, sdch, *`), [known, ...Object.values(others)])
  assert.deepEqual(await received('dcb, dcz'), ['identity', ...Object.values(others)])
})

test('Content that cannot be decoded is a 502, and not half a page', async (t) => {
  const world = await worldWith(t, (_req, res) =>
    res.writeHead(200, { ...html, 'content-encoding': 'gzip' }).end('this is not gzip'),
  )

  const { status, content } = await ask(world.url)

  assert.equal(status, 502)
  assert.doesNotMatch(content.toString(), /not gzip/)
  const failed = world.replicas[0]?.log.find(({ message }) => message === 'upstream.failed')
  assert.match(String(failed?.fields['reason']), /cannot be decoded/)
})

test('Content that ends too early ends the response visibly', async (t) => {
  const encoded = zlib.gzipSync(Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7919) % 251)))
  const world = await worldWith(t, (_req, res) =>
    res.writeHead(200, { ...html, 'content-encoding': 'gzip' }).end(encoded.subarray(0, encoded.length / 2)),
  )

  await assert.rejects(ask(world.url), /aborted|ECONNRESET/)
})

for (const [why, status, fields] of [
  ['a range', 206, { ...html, 'content-range': 'bytes 0-46/235000' }],
  ['no-transform', 200, { ...html, 'cache-control': 'max-age=1, no-transform' }],
  ['another charset', 200, { 'content-type': 'text/html; charset="UTF-16LE"' }],
  ['an unknown coding', 200, { ...html, 'content-encoding': 'dcb' }],
] as const)
  test(`Content that cannot be rewritten is passed on unchanged, with a line in the log: ${why}`, async (t) => {
    const world = await worldWith(t, (_req, res) => res.writeHead(status, { ...fields, etag: '"1"' }).end(link))

    for (let times = 0; times < 2; times += 1) {
      const { headers, content } = await ask(world.url)
      assert.equal(content.toString(), link)
      assert.equal(headers['etag'], '"1"')
    }

    const lines = world.replicas[0]?.log.filter(({ message }) => message === 'content.not_rewritten')
    assert.equal(lines?.length, 1)
  })

test('Other types of content are never touched', async (t) => {
  const world = await worldWith(t, (req, res) =>
    res
      .writeHead(200, { 'content-type': req.url?.slice(1) ?? '', 'content-length': Buffer.byteLength(link) })
      .end(link),
  )

  for (const type of ['text/plain', 'application/octet-stream', 'text/event-stream', 'image/svg+xml', 'text/htmlx'])
    assert.equal((await ask(`${world.url}/${type}`)).content.toString(), link, type)
  for (const type of ['text/css', 'application/json', 'application/problem+json', 'TEXT/HTML'])
    assert.equal((await ask(`${world.url}/${type}`)).content.toString(), linkFor(world), type)
})

test('A response without content has the fields of one that is rewritten', async (t) => {
  const world = await worldWith(t, (req, res) => {
    const status = req.headers['if-none-match'] === undefined ? 200 : 304
    res.writeHead(status, { ...html, etag: '"1"', 'content-length': 10 }).end()
  })

  const head = await ask(world.url, {}, 'HEAD')
  const unchanged = await ask(world.url, { 'if-none-match': 'W/"1"' })

  assert.deepEqual([head.status, head.headers['etag'], head.headers['content-length']], [200, 'W/"1"', undefined])
  assert.deepEqual([unchanged.status, unchanged.headers['etag']], [304, 'W/"1"'])
})

test('A client that reads slowly makes the gateway hold little, and gets everything', async (t) => {
  const large = link.repeat(400_000)
  const world = await worldWith(t, (_req, res) => {
    let left = 400
    const more = () => {
      while (left > 0) {
        left -= 1
        if (!res.write(link.repeat(1_000))) {
          res.once('drain', more)
          return
        }
      }
      res.end()
    }
    res.writeHead(200, html)
    more()
  })
  const expected = large.length + (world.url.length - 'http://intranet.corp:8080'.length) * 400_000

  const length = await new Promise<number>((resolve, reject) => {
    request(world.url, (res) => {
      let read = 0
      res.pause()
      res.setEncoding('utf8')
      res.on('data', (text: string) => (read += text.length))
      res.on('end', () => resolve(read))
      res.on('error', reject)
      setImmediate(() => res.resume())
    }).end()
  })

  assert.equal(length, expected)
})

test('A client that leaves ends the exchange with the application', async (t) => {
  let closed: () => void = () => {}
  const isClosed = new Promise<void>((resolve) => (closed = resolve))
  const world = await worldWith(t, (_req, res) => {
    res.on('close', closed).writeHead(200, { ...html, 'content-encoding': 'gzip' })
    const packed = zlib.createGzip()
    packed.pipe(res)
    packed.write(page)
    packed.flush()
  })

  const req = request(world.url, (res) => {
    res.once('data', () => req.destroy())
  })
  req.on('error', () => {}).end()

  await isClosed
})

test('UTF-16 content with a mark stays as it is, also when it arrives byte by byte', async (t) => {
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(link, 'utf16le'), Buffer.from(link)])
  const world = await worldWith(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/html' })
    const write = (at: number) => {
      if (at < utf16.length) res.write(utf16.subarray(at, at + 1), () => write(at + 1))
      else res.end()
    }
    write(0)
  })

  assert.deepEqual((await ask(world.url)).content, utf16)
})
