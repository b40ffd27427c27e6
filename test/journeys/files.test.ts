// Slow: 4 s, large files, and links that are replaced without a pause
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

/** A folder with a site, and beside it a secret that must never be served. */
async function startSite(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-files-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const site = join(folder, 'site')
  mkdirSync(join(site, 'sub'), { recursive: true })
  writeFileSync(join(folder, 'secret.txt'), 'SECRET')
  writeFileSync(join(site, 'index.html'), '<p>start</p>')
  writeFileSync(join(site, 'a.txt'), '0123456789')
  const world = await startWorld(t, {
    upstreamSettings: `rules:
      - { path: /open/*, access: public, respond: { files: ${site}, max_age: 1h, headers: { X-From: folder } } }
      - { path: /closed/*, respond: { files: ${site} } }`,
  })
  const port = Number(new URL(world.url).port)
  const raw = (path: string, fields = '') =>
    exchangeRaw(port, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields}Connection: close\r\n\r\n`)
  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    fetch(world.url + path, { headers: { 'accept-encoding': 'identity', ...headers }, redirect: 'manual' })
  return { ...world, folder, site, port, raw, get }
}

test('Files have a type, validators and a lifetime, and clients get only what has changed', async (t) => {
  const { get, raw, url } = await startSite(t)

  const whole = await get('/open/a.txt')
  assert.deepEqual([whole.status, await whole.text()], [200, '0123456789'])
  const { headers } = whole
  assert.equal(headers.get('content-type'), 'text/plain; charset=utf-8')
  assert.deepEqual([headers.get('x-content-type-options'), headers.get('cache-control')], ['nosniff', 'max-age=3600'])
  assert.deepEqual([headers.get('vary'), headers.get('x-from')], ['Accept-Encoding', 'folder'])
  const etag = headers.get('etag') ?? ''
  const modified = headers.get('last-modified') ?? ''
  const statusFor = async (condition: string) => (await raw('/open/a.txt', `${condition}\r\n`)).statuses
  assert.deepEqual(await statusFor(`If-None-Match: ${etag}`), [304])
  assert.deepEqual(await statusFor(`If-Modified-Since: ${modified}`), [304])
  assert.deepEqual(await statusFor('If-Match: "other"'), [412])
  const head = await fetch(`${url}/open/a.txt`, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } })
  assert.deepEqual([head.headers.get('content-length'), await head.text()], ['10', ''])
})

test('Parts of a file are served, also of a compressed one', async (t) => {
  const { get, site, raw } = await startSite(t)
  const text = 'text '.repeat(1000)
  writeFileSync(join(site, 'b.txt'), text)
  writeFileSync(join(site, 'b.txt.gz'), gzipSync(text))

  const part = await get('/open/a.txt', { range: 'bytes=2-4' })
  assert.deepEqual([part.status, part.headers.get('content-range'), await part.text()], [206, 'bytes 2-4/10', '234'])
  const beyond = await get('/open/a.txt', { range: 'bytes=10-' })
  assert.deepEqual([beyond.status, beyond.headers.get('content-range')], [416, 'bytes */10'])
  const weak = (await get('/open/a.txt')).headers.get('etag') ?? ''
  assert.equal((await get('/open/a.txt', { range: 'bytes=2-4', 'if-range': weak })).status, 200)
  const size = gzipSync(text).length
  const compressed = await raw('/open/b.txt', 'Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n')
  assert.match(compressed.text, new RegExp(`Content-Range: bytes 0-1/${size}\r\n`))
  assert.match(compressed.text, /Content-Encoding: gzip\r\n/)
  assert.ok(compressed.text.endsWith('\x1f\x8b'))
})

test('The client gets the compressed file with the coding that it wants most', async (t) => {
  const { raw, site } = await startSite(t)
  writeFileSync(join(site, 'c.css'), 'body{}')
  writeFileSync(join(site, 'c.css.gz'), gzipSync('body{}'))
  writeFileSync(join(site, 'c.css.br'), brotliCompressSync('body{}'))
  const codingFor = async (accepted: string) => {
    const { text } = await raw('/open/c.css', accepted === '' ? '' : `Accept-Encoding: ${accepted}\r\n`)
    assert.match(text, /Content-Type: text\/css; charset=utf-8\r\n/)
    return /^content-encoding: (.*)\r$/im.exec(text)?.[1]
  }

  assert.equal(await codingFor('gzip, deflate, br, zstd'), 'br')
  assert.equal(await codingFor('br;q=0.5, gzip'), 'gzip')
  assert.equal(await codingFor('gzip;q=0, *'), 'br')
  assert.equal(await codingFor('br;q=0, gzip;q=0'), undefined)
  assert.equal(await codingFor('identity, gzip;q=0.5'), undefined)
  assert.equal(await codingFor('zstd'), undefined)
  assert.equal(await codingFor(''), undefined)
})

test('A folder is its index, and is never listed', async (t) => {
  const { get } = await startSite(t)

  assert.equal(await (await get('/open/')).text(), '<p>start</p>')
  const folder = await get('/open?a=b')
  assert.deepEqual([folder.status, folder.headers.get('location')], [301, '/open/?a=b'])
  assert.equal((await get('/open/sub')).headers.get('location'), '/open/sub/')
  assert.equal((await get('/open/sub/')).status, 404)
  assert.equal((await get('/open/a.txt/')).status, 404)
})

test('Nothing outside the folder is served, and nothing that is no file', async (t) => {
  const { raw, site, folder, get } = await startSite(t)
  symlinkSync(join(folder, 'secret.txt'), join(site, 'link.txt'))
  symlinkSync(folder, join(site, 'up'))
  symlinkSync('/proc/self/environ', join(site, 'environ'))
  symlinkSync('loop', join(site, 'loop'))
  symlinkSync('a.txt', join(site, 'inside.txt'))
  writeFileSync(join(site, '.env'), 'SECRET')
  mkdirSync(join(site, '.git'))
  writeFileSync(join(site, '.git', 'config'), 'SECRET')
  mkdirSync(`${site}-next`)
  writeFileSync(join(`${site}-next`, 'a.txt'), 'SECRET')
  symlinkSync(`${site}-next`, join(site, 'next'))
  execFileSync('mkfifo', [join(site, 'pipe')])
  const paths = [
    ...['link.txt', 'up/secret.txt', 'environ', 'loop', '.env', '.git/config', 'next/a.txt', 'pipe'],
    ...[
      '../secret.txt',
      '%2e%2e/secret.txt',
      '..%2fsecret.txt',
      '%2e%2e%2fsecret.txt',
      '..%5csecret.txt',
      '..\\secret.txt',
    ],
    ...[
      'sub/../../secret.txt',
      'sub%2f..%2f..%2fsecret.txt',
      '%252e%252e/secret.txt',
      '..;/secret.txt',
      '%c0%ae%c0%ae/secret.txt',
    ],
    ...[
      'a.txt%00.html',
      '%00',
      'a.txt%2f..%2f..%2fsecret.txt',
      '%2Fetc%2Fpasswd',
      '/etc/passwd',
      '%2eenv',
      'sub/%2e%2e%2f.env',
    ],
    ...['%ff', 'a.txt%20', 'a.txt.', 'A.TXT', `${'a'.repeat(300)}`, 'up%2fsecret.txt', '~root', 'dev%2fnull'],
  ]
  for (const path of paths) {
    const { text, end, statuses } = await raw(`/open/${path}`)
    assert.equal(end, 'closed', path)
    // 401: the path leads out of the rule, and needs a sign-in.
    assert.ok([400, 401, 404].includes(statuses[0] ?? 0), `${path}: ${statuses[0]}`)
    assert.doesNotMatch(text, /SECRET|root:|PATH=/, path)
  }
  assert.equal(await (await get('/open/inside.txt')).text(), '0123456789')
})

test('Somebody who replaces links in the folder without a pause gets no file outside of it', async (t) => {
  const { get, site, folder } = await startSite(t)
  mkdirSync(join(folder, 'outside'))
  writeFileSync(join(folder, 'outside', 'f.txt'), 'SECRET')
  mkdirSync(join(site, 'inside'))
  writeFileSync(join(site, 'inside', 'f.txt'), 'public')
  const replacing = spawn(
    process.execPath,
    [
      '-e',
      `const { symlinkSync, renameSync } = require('node:fs')
     const replace = (target) => (symlinkSync(target, 'fresh'), renameSync('fresh', 'link'))
     for (;;) { replace('../outside'); replace('inside') }`,
    ],
    { cwd: site },
  )
  t.after(() => replacing.kill())
  await until('there is a link', () => existsSync(join(site, 'link')))
  let served = 0
  for (let round = 0; round < 300; round += 1)
    for (const response of await Promise.all(Array.from({ length: 8 }, () => get('/open/link/f.txt')))) {
      const text = await response.text()
      assert.doesNotMatch(text, /SECRET/)
      if (text === 'public') served += 1
    }
  assert.ok(served > 0)
})

test('Only GET and HEAD are for files', async (t) => {
  const { url } = await startSite(t)

  const refused = await fetch(`${url}/open/a.txt`, { method: 'POST', body: 'x' })

  assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD'])
})

test('Files behind the sign-in are private, and a download ends with its session', async (t) => {
  const { url, browser, site, provider, port } = await startSite(t)
  writeFileSync(join(site, 'large.bin'), Buffer.alloc(64 * 1024 * 1024))
  const jane = browser()
  assert.match(String((await jane.send(`${url}/closed/a.txt`)).headers['location']), /sign-in/)
  const read = await jane.get(`${url}/closed/a.txt`)
  assert.deepEqual([read.body, read.headers['cache-control']], ['0123456789', 'private, no-cache'])
  assert.equal(read.headers['vary'], 'Accept-Encoding, Cookie')

  const cookie = `gatehouse=${jane.cookies.get('gatehouse')?.value}`
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  let received = 0
  let isClosed = false
  socket.on('error', () => {}).once('close', () => (isClosed = true))
  socket.once('data', (part) => {
    received += part.length
    socket.pause()
  })
  socket.write(`GET /closed/large.bin HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ${cookie}\r\n\r\n`)
  await until('the download has begun', () => received > 0)
  const [session] = provider.sessions()
  await provider.endSession(session?.sid ?? '')
  socket.on('data', (part) => (received += part.length)).resume()
  await until('the connection is closed', () => isClosed)
  assert.ok(received < 64 * 1024 * 1024)
})

test('A file that becomes shorter while it is sent does not look complete', async (t) => {
  const { site, port } = await startSite(t)
  const file = join(site, 'shrinking.bin')
  writeFileSync(file, Buffer.alloc(64 * 1024 * 1024))
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  let heads = 0
  let isClosed = false
  const count = (part: Buffer) => (heads += part.toString('latin1').split('HTTP/1.1 ').length - 1)
  socket.on('error', () => {}).once('close', () => (isClosed = true))
  socket.once('data', (part) => {
    count(part)
    socket.pause()
    truncateSync(file, 1024)
    socket.on('data', count).resume()
  })
  const request = (name: string) => `GET /open/${name} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
  socket.write(request('shrinking.bin') + request('a.txt'))

  await until('the connection is closed', () => isClosed)

  assert.equal(heads, 1, 'the next response would be taken for content of the file')
})

test('A folder may be replaced as a whole, and without it there are no files', async (t) => {
  const { get, site } = await startSite(t)
  mkdirSync(`${site}-2`)
  writeFileSync(join(`${site}-2`, 'a.txt'), 'second')
  utimesSync(join(`${site}-2`, 'a.txt'), 1, 1)

  renameSync(site, `${site}-1`)
  assert.equal((await get('/open/a.txt')).status, 404)
  symlinkSync(`${site}-2`, site)
  assert.equal(await (await get('/open/a.txt')).text(), 'second')
})

test('Clients that leave do not keep files open', async (t) => {
  const { get, site, port } = await startSite(t)
  writeFileSync(join(site, 'large.bin'), Buffer.alloc(8 * 1024 * 1024))
  const isOpen = () =>
    readdirSync('/proc/self/fd').some((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(site)
      } catch {
        return false
      }
    })
  for (let round = 0; round < 100; round += 1) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {}).write('GET /open/large.bin HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
    if (round % 2 === 0) await new Promise((resolve) => socket.once('connect', resolve))
    else await new Promise((resolve) => socket.once('data', resolve))
    socket.destroy()
  }

  await until('all files are closed', () => !isOpen())

  assert.equal((await get('/open/a.txt')).status, 200)
})
