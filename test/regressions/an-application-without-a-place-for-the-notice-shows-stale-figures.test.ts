import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import zlib from 'node:zlib'
import { LineInHead } from '../../src/proxy/session-notice.ts'
import { choose } from '../pages/support.ts'
import { httpUpstream } from '../proxy/support.ts'
import { startChromium } from '../support/chromium.ts'
import { startWorld, type World } from '../support/world.ts'

const chromium = await startChromium()
const line = '<script src="/.gatehouse/session.js" defer></script>'
const page = '<!doctype html><html lang="en"><head><title>Queues</title></head><body><h1>5 queues</h1></body></html>'

type Fields = Readonly<Record<string, string>>

/** An application with one response, whose pages get the notice. */
async function start(t: TestContext, fields: Fields, content: string | Buffer = page, more = ''): Promise<World> {
  const { port } = await httpUpstream(t, (_req, res) => {
    res
      .writeHead(200, { 'content-type': 'text/html', 'content-length': Buffer.byteLength(content), ...fields })
      .end(content)
  })
  return startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `session_notice: true
    rules: [{ path: /open, access: public }]
    ${more}`,
  })
}

for (const [what, fields, content] of [
  ['a plain page', {}, page],
  ['a compressed page', { 'content-encoding': 'br' }, zlib.brotliCompressSync(page)],
] as const)
  test(`An open page says that the session has ended: ${what}`, async (t) => {
    const world = await start(t, fields, content)
    const jane = await chromium.person(t)
    const tab = await jane.tab()
    await tab.goto(`${world.url}/queues`)
    await choose(tab, 'Jane Doe')
    await tab.getByRole('heading', { name: '5 queues' }).waitFor()
    await tab.waitForFunction(() => navigator.locks.query().then(({ held }) => held?.length === 1))

    await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

    await tab.getByRole('alert').waitFor()
    assert.deepEqual(jane.complaints, [])
  })

test('Only the line is added, and the fields describe the new content', async (t) => {
  const own = `${page}<a href="http://127.0.0.1/x">`
  const world = await start(t, { etag: '"1"', 'content-type': 'text/html; charset=windows-1252' }, own)
  const jane = world.browser()

  const { body, headers } = await jane.get(`${world.url}/queues`)

  assert.equal(body, own.replace('<head>', `<head>${line}`))
  assert.equal(headers['etag'], 'W/"1"')
  assert.equal(headers['content-length'], undefined)
  const script = { headers: { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-origin' } }
  assert.equal((await jane.send(`${world.url}/queues`, script)).body, own, 'a script gets what the application sends')
  assert.equal((await world.browser().send(`${world.url}/open`)).body, own, 'a page without a session has no end')
})

for (const [what, fields, content = page] of [
  ['JSON', { 'content-type': 'application/json' }, '"<html>"'],
  ['a file', { 'content-disposition': 'attachment; filename="report.html"' }],
  ['a fragment', {}, '<h1>5 queues</h1><head>'],
  ['UTF-16', {}, Buffer.from(`\ufeff${page}`, 'utf16le')],
  ['a page that must not be changed', { 'cache-control': 'no-transform' }],
] as const)
  test(`The content stays as the application sends it: ${what}`, async (t) => {
    const world = await start(t, fields, content)

    const { body } = await world.browser().get(`${world.url}/queues`)

    assert.equal(body, content.toString())
  })

const forbidding = [
  "default-src 'none'",
  "script-src 'nonce-abc' 'strict-dynamic' 'self'; connect-src 'self'",
  "script-src 'self'; script-src-elem https://cdn.example",
  "script-src 'self'; connect-src https://api.example",
  'sandbox allow-scripts',
  "script-src 'self', default-src 'none'",
] as const

for (const policy of forbidding)
  test(`A page whose policy forbids the script stays as it is, and the log says so once: ${policy}`, async (t) => {
    const world = await start(t, { 'content-security-policy': policy })
    const jane = world.browser()

    assert.equal((await jane.get(`${world.url}/queues`)).body, page)
    assert.equal((await jane.get(`${world.url}/queues`)).body, page)

    const lines = world.replicas[0]?.log.filter(({ message }) => message === 'content.not_rewritten') ?? []
    assert.deepEqual(
      lines.map(({ fields }) => fields['reason']),
      ['the Content-Security-Policy does not allow scripts and requests of its own origin'],
    )
  })

for (const [what, policy, more] of [
  ['scripts of its own origin', "default-src 'self'; script-src 'SELF' 'unsafe-inline'; img-src 'none'"],
  ['all hosts with a scheme', "default-src ws: http: data: 'unsafe-inline' 'unsafe-eval'"],
  ['nothing about scripts', "frame-ancestors 'none'; sandbox allow-scripts allow-same-origin"],
  ['nothing after response_headers', "default-src 'none'", 'response_headers: { remove: [Content-Security-Policy] }'],
] as const)
  test(`A page whose policy allows the script gets it: ${what}`, async (t) => {
    const world = await start(t, { 'content-security-policy': policy }, page, more)

    assert.match((await world.browser().get(`${world.url}/queues`)).body, /session\.js/)
  })

test('With rewrite_content, a page gets new addresses and the line', async (t) => {
  const own = `${page}<a href="http://intranet.corp/x">`
  const world = await start(t, {}, own, 'rewrite_content: true\n    also_known_as: [http://intranet.corp]')

  const { body } = await world.browser().get(`${world.url}/queues`)

  assert.equal(body, own.replace('<head>', `<head>${line}`).replace('http://intranet.corp', world.url))
})

/** `|` is the place of the line. */
for (const document of [
  '<!DOCTYPE html>\n<html>\n<head>|<meta charset=utf-8>',
  '\xef\xbb\xbf <!-- <head> --><?xml version="1.0"?><!doctype html SYSTEM "x"><html data-a="<head>" lang=en><!----><HEAD id=\'>\'>|',
  '<html>|<body><head>',
  '<!doctype html>|<title>Queues</title>',
  '<!doctype html>|',
  '<head>|</head>',
  '<html>|<header>',
  '<!--><html>|<!-- a comment without an end',
  '<template><html><head>',
  '<h1 title="<html>">',
  '<htmlx>',
  'text <html>',
  '',
]) {
  test(`However the content is split, the line has one place in ${JSON.stringify(document)}`, () => {
    const content = document.replace('|', '')
    for (let size = 1; size <= content.length + 1; size += 1) {
      const stream = new LineInHead('LINE')
      let passed = ''
      for (let at = 0; at < content.length; at += size) passed += stream.next(content.slice(at, at + size))
      assert.equal(passed + stream.end(), document.replace('|', 'LINE'), `in parts of ${size}`)
    }
  })
}

test('A beginning that never ends is not held', () => {
  const stream = new LineInHead('LINE')
  const long = `<!doctype html><!--${'x'.repeat(20_000)}`

  assert.equal(stream.next(long), long.replace('html>', 'html>LINE'))
  assert.equal(stream.next('-->'), '-->')
})
