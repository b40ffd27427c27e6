import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as request1, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import fc from 'fast-check'
import { readResponse, startHttp2World } from '../../support/http2.ts'

/** The fields of a response that depend on its version or on the time. */
const ofVersion = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', ':status'])
/** The fields that the gateway writes anew for each request, or by the framing of the client. */
const ofRequest = new Set(['x-request-id', 'gatehouse-loop', 'connection'])

interface Sent {
  readonly method: string
  readonly path: string
  readonly fields: readonly (readonly [string, string])[]
  readonly content: string | undefined
}

interface Outcome {
  readonly status: number
  readonly fields: readonly string[]
  readonly body: string
}

/** The lines in lower case, without those of `without`, in an order of their own. */
function lines(fields: readonly (readonly [string, string])[], without: ReadonlySet<string>): string[] {
  const kept = fields.filter(([name]) => !without.has(name.toLowerCase()))
  return kept.map(([name, value]) => `${name.toLowerCase()}: ${value.trim()}`).sort()
}

function pairsOf(rawHeaders: readonly string[]): [string, string][] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, at) => [
    rawHeaders[2 * at] ?? '',
    rawHeaders[2 * at + 1] ?? '',
  ])
}

/** Several fields of one name are a list (RFC 9110 §5.3). HTTP/2 may write them as one. */
function joined(pairs: readonly (readonly [string, string])[]): [string, string][] {
  const byName = new Map<string, string>()
  for (const [name, value] of pairs) {
    const lower = name.toLowerCase()
    const earlier = byName.get(lower)
    byName.set(lower, earlier === undefined ? value : `${earlier}${lower === 'cookie' ? '; ' : ', '}${value}`)
  }
  return [...byName]
}

async function sendOver1(port: number, { method, path, fields, content }: Sent): Promise<Outcome> {
  const headers = [...fields.flat(), 'Host', `127.0.0.1:${port}`]
  if (content !== undefined) headers.push('Content-Length', String(content.length))
  const req = request1({ host: '127.0.0.1', port, method, path, headers, agent: false })
  // Node.js would write the head of a text in UTF-8.
  req.end(content === undefined ? undefined : Buffer.from(content))
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  let body = ''
  for await (const part of res) body += (part as Buffer).toString('latin1')
  return { status: res.statusCode ?? 0, fields: lines(joined(pairsOf(res.rawHeaders)), ofVersion), body }
}

const values = fc.stringMatching(/^[\x21-\x7e\xa1-\xff]([\x20-\x7e]{0,20}[\x21-\x7e\xa1-\xff])?$/)
const names = fc.oneof(
  fc.constantFrom(
    ...['accept', 'authorization', 'content-type', 'cookie', 'expect', 'forwarded', 'if-none-match', 'origin', 'range'],
    ...[
      'referer',
      'sec-fetch-dest',
      'sec-fetch-mode',
      'sec-fetch-site',
      'user-agent',
      'x-email',
      'x_email',
      'x-remote-user',
    ],
    ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-original-url', 'x-requested-with', 'proxy'],
  ),
  fc.stringMatching(/^x-[a-z0-9]{1,8}$/),
)
const known = fc.constantFrom(
  'text/html',
  'navigate',
  'document',
  'iframe',
  'cors',
  'cross-site',
  'https://evil.example.com',
  'a=1; b=2',
  '__Host-gatehouse=x',
)
const paths = fc.oneof(
  fc.constantFrom(
    '/',
    '/public/x',
    '/public/x?a=b',
    '/api/x',
    '/admin/x',
    '/.gatehouse/session',
    '/.gatehouse/sign-in',
    '/%2e%2e/x',
    '/public/..%2fx',
    '//x',
    '/logout',
  ),
  fc.stringMatching(/^\/[\x21-\x22\x24-\x7e]{0,12}$/),
)
const requests: fc.Arbitrary<Sent> = fc
  .record({
    method: fc.constantFrom('GET', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'),
    path: paths,
    fields: fc.uniqueArray(fc.tuple(names, fc.oneof(known, values)), { maxLength: 6, selector: ([name]) => name }),
    content: fc.option(fc.string({ unit: 'grapheme-ascii', maxLength: 20 }), { nil: undefined }),
  })
  .map((sent) => ({
    ...sent,
    content: ['GET', 'HEAD', 'OPTIONS'].includes(sent.method) ? undefined : (sent.content ?? ''),
  }))

test('A request gets the same decision, upstream request and response over HTTP/1.1 and HTTP/2', async (t) => {
  let seen: string[] = []
  const world = await startHttp2World(
    t,
    async (req, res) => {
      let content = ''
      for await (const part of req) content += String(part)
      seen.push([`${req.method} ${req.url}`, ...lines(joined(pairsOf(req.rawHeaders)), ofRequest), content].join('\n'))
      res.setHeader('X-Seen', ['1', '2'])
      res.setHeader('Set-Cookie', ['own=1', '__Host-gatehouse=forged'])
      res.setHeader('Cache-Control', 'max-age=60')
      res.end(`${req.method} ${req.url}`)
    },
    {
      h2c: true,
      upstreamSettings: `rules:
      - { path: /public/*, access: public }
      - { path: /api/*, unauthenticated: 401 }`,
    },
  )
  const port = Number(new URL(world.url).port)
  const session = world.connect()
  const sendOver2 = async ({ method, path, fields, content }: Sent): Promise<Outcome> => {
    const pseudo = {
      ':method': method,
      ':path': path,
      ...(content !== undefined && { 'content-length': content.length }),
    }
    const stream = session.request({ ...pseudo, ...Object.fromEntries(fields) }, { endStream: content === undefined })
    if (content !== undefined) stream.end(content)
    const { status, headers, body } = await readResponse(stream)
    const pairs = Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')] as const)
    return { status, fields: lines(pairs, ofVersion), body }
  }
  /** A new identifier in each response. */
  const comparable = ({ status, fields, body }: Outcome) => {
    const clean = (text: string) =>
      text.replace(/^(set-cookie: [^=]+=)[^;]*/, '$1').replaceAll(/(?:request_id|state|nonce)[^\s<]*|[\w-]{16,}/g, '…')
    return { status, fields: fields.map(clean).filter((line) => !line.startsWith('content-length')), body: clean(body) }
  }

  await fc.assert(
    fc.asyncProperty(requests, async (sent) => {
      seen = []
      const one = await sendOver1(port, sent)
      const [upstream1] = seen
      seen = []
      const two = await sendOver2(sent)
      const [upstream2] = seen
      assert.deepEqual(comparable(two), comparable(one))
      assert.equal(upstream2, upstream1)
    }),
    { numRuns: 300 },
  )
})
