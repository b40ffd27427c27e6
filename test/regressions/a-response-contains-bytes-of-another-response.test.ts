import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { AddressText } from '../../src/http/address-text.ts'
import { ClientResponse } from '../../src/proxy/client-response.ts'
import { ContentRewriter } from '../../src/proxy/content-rewriter.ts'
import { CookieKeeper } from '../../src/proxy/cookie-keeper.ts'
import type { ResponseHandler } from '../../src/transport/transport.ts'
import { until } from '../support/until.ts'

// The memory of a short last part is used again after the response, for one of another client. So
// whatever keeps the part has to copy it.

/** A handler that collects the content of a response. */
function collector() {
  const parts: Buffer[] = []
  let hasEnded = false
  const handler: ResponseHandler = {
    onSend: () => true,
    onResponse() {},
    onShortPart: (part) => void parts.push(Buffer.from(part)),
    onContent: (part, giveBack) => {
      parts.push(Buffer.from(part))
      giveBack()
    },
    onEnd: () => void (hasEnded = true),
    onSwitch() {},
    onError: assert.ifError,
    onDone() {},
  }
  return { handler, content: () => Buffer.concat(parts), hasEnded: () => hasEnded }
}

const control = { pause() {}, resume() {}, abort() {} }

/** Passes a short last part to a handler. Then another response takes its memory. */
function respond(handler: ResponseHandler, fields: readonly string[], content: Buffer): void {
  const memory = Buffer.from(content)
  handler.onSend(control)
  handler.onResponse(200, 'OK', fields)
  handler.onShortPart(memory)
  handler.onDone()
  handler.onEnd([])
  memory.fill('another response')
}

test('A response that waits for its cookies to be stored contains no bytes of another response', async () => {
  const { handler, content, hasEnded } = collector()
  let stored: () => void = () => {}
  const keeper = new CookieKeeper(handler, {
    isKept: () => true,
    isNoted: () => false,
    keep: () => new Promise((resolve) => (stored = resolve)),
    onLost: () => assert.fail(),
    onRejected: () => assert.fail(),
    read: () => ({ name: 'SID', value: '1', host: 'h', path: '/', expiresAt: undefined, secure: false }) as never,
    readInBrowser: () => undefined,
  })

  respond(keeper, ['Set-Cookie', 'SID=1'], Buffer.from('of this person'))
  stored()

  await until('the response has ended', hasEnded)
  assert.equal(content().toString(), 'of this person')
})

test('A response that is decoded contains no bytes of another response', async () => {
  const { handler, content, hasEnded } = collector()
  const addresses = new AddressText([{ from: 'http://a', to: 'http://b', base: '', publicBase: '' }], 'http:')
  const rewriter = new ContentRewriter(handler, {
    addresses,
    notice: undefined,
    isHead: false,
    onSkip: () => assert.fail(),
  })

  const fields = ['Content-Type', 'text/html; charset=utf-8', 'Content-Encoding', 'gzip']
  respond(rewriter, fields, gzipSync('of this person'))

  await until('the response has ended', hasEnded)
  assert.equal(gunzipSync(content()).toString(), 'of this person')
})

/** Responds to one request with Node's own class, and resolves to what the client has received. */
async function received(t: TestContext, handle: (res: ServerResponse, response: ClientResponse) => void) {
  const server = createServer((req, res) => handle(res, new ClientResponse(req, res))).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const client = connect((server.address() as { port: number }).port, '127.0.0.1')
  t.after(() => client.destroy())
  client.write('GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
  let text = ''
  client.on('data', (bytes) => (text += bytes.toString('latin1')))
  await once(client, 'end')
  return text
}

test("A response of Node's own class contains no bytes of another response", async (t) => {
  const memory = Buffer.from('of this person')
  const text = await received(t, (_, response) => {
    response.begin(200, 'OK', ['Content-Length', '14'])
    response.hold(memory)
    response.end()
    memory.fill('another response')
  })

  assert.match(text, /\r\n\r\nof this person$/)
})

test("A later part of a response of Node's own class contains no bytes of another response", async (t) => {
  const memory = Buffer.from('of this person')
  const long = Buffer.alloc(8 * 1024 * 1024, 'x')
  const text = await received(t, (res, response) => {
    response.begin(200, 'OK', ['Content-Length', String(long.length + 14)])
    response.write(long, () => {})
    assert.ok(res.writableLength > 0, 'the client does not take everything at once')
    response.write(memory)
    response.end()
    memory.fill('another response')
  })

  assert.match(text, /xof this person$/)
})
