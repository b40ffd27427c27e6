import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import type { KeptCookie } from '../../src/http/cookie-jar.ts'
import { Metrics } from '../../src/observe/metrics.ts'
import { callLogout } from '../../src/proxy/logout-call.ts'
import { TargetPool } from '../../src/proxy/targets/target.ts'
import { Upstreams } from '../../src/proxy/upstream.ts'
import { silent } from '../support/signing-provider.ts'
import { httpUpstream, upstreamConfig } from './support.ts'

const cookieAt = (domain: string, more: Partial<KeptCookie> = {}): KeptCookie => ({
  ...{ name: 'sid', value: `of-${domain}`, domain, path: '/' },
  ...more,
})
const atHost = { hostOnly: true } as const

interface Received {
  readonly host: string | undefined
  readonly cookie: string | undefined
}

async function upstreamWith(
  t: TestContext,
  respond: (req: IncomingMessage, res: ServerResponse) => void,
  { timeoutMs = 60_000, ...settings }: Parameters<typeof upstreamConfig>[0] & { readonly timeoutMs?: number } = {},
) {
  const received: Received[] = []
  const server = await httpUpstream(t, (req, res) => {
    received.push({ host: req.headers.host, cookie: req.headers.cookie })
    respond(req, res)
  })
  const config = upstreamConfig({ url: new URL(`http://127.0.0.1:${server.port}`), ...settings })
  const upstreams = new Upstreams([config], {
    isTracing: false,
    reservedPrefix: '/.gatehouse/',
    pool: new TargetPool(),
    log: silent,
    metrics: new Metrics(),
  })
  t.after(() => upstreams.destroy())
  const call = (...cookies: readonly KeptCookie[]) =>
    callLogout(
      config,
      { method: 'POST', target: '/logout', timeoutMs },
      { session: 'session', cookies, claims: {}, tokens: {} },
      { upstreams, now: 1_000 },
    )
  return { call, received, upstream: upstreams.of(config) }
}

test('Each host at which the person has cookies gets one call', async (t) => {
  const { call, received } = await upstreamWith(t, (_, res) => res.end(), {
    externalUrl: new URL('https://a.example.com:8443'),
  })

  assert.equal(
    await call(
      cookieAt('a.example.com', atHost),
      cookieAt('b.example.com', atHost),
      cookieAt('example.com', { name: 'all' }),
      cookieAt('c.example.com', { ...atHost, expires_at: 1_000 }),
      cookieAt('d.example.com', { ...atHost, path: '/other' }),
    ),
    200,
  )

  assert.deepEqual(
    received.toSorted((a, b) => String(a.host).localeCompare(String(b.host))),
    [
      { host: 'a.example.com:8443', cookie: 'sid=of-a.example.com; all=of-example.com' },
      { host: 'b.example.com:8443', cookie: 'sid=of-b.example.com; all=of-example.com' },
    ],
  )
})

test('Cookies of a parent host alone, and of a domain without a host of the upstream, get a call of their own', async (t) => {
  const { call, received } = await upstreamWith(t, (_, res) => res.end(), {
    externalUrl: new URL('https://a.example.com:8443'),
  })

  await call(cookieAt('example.com', atHost), cookieAt('other.example'))

  assert.deepEqual(received.map(({ host, cookie }) => [host, cookie]).toSorted(), [
    ['example.com:8443', 'sid=of-example.com'],
    ['other.example:8443', 'sid=of-other.example'],
  ])
})

test('Nothing is sent without a cookie', async (t) => {
  const { call, received } = await upstreamWith(t, (_, res) => res.end())

  assert.equal(await call(cookieAt('gateway.example', { ...atHost, path: '/other' })), 'no_cookie')
  assert.deepEqual(received, [])
})

test('A redirect is a response, and is not followed', async (t) => {
  const { call, received } = await upstreamWith(t, (_, res) => res.writeHead(303, { Location: '/' }).end())

  assert.equal(await call(cookieAt('a.example', atHost)), 303)
  assert.equal(received.length, 1)
})

test('A response whose content never ends is a response, and its connection is given back', async (t) => {
  const { call, upstream } = await upstreamWith(
    t,
    (_, res) => {
      const more = () => void (res.destroyed || res.write('x'.repeat(1_000), () => setImmediate(more)))
      res.writeHead(200)
      more()
    },
    { maxConnections: 1 },
  )

  for (let times = 0; times < 3; times += 1) assert.equal(await call(cookieAt('a.example', atHost)), 200)
  await upstream.close()
})

for (const [what, respond] of [
  ['status 503', (_req: IncomingMessage, res: ServerResponse) => void res.writeHead(503).end()],
  ['no response in time', () => {}],
  ['a closed connection', (req: IncomingMessage) => void req.socket.destroy()],
] as const)
  test(`A call fails: ${what}`, async (t) => {
    const { call, upstream } = await upstreamWith(t, respond, { timeoutMs: what.includes('time') ? 50 : 60_000 })

    await assert.rejects(() => call(cookieAt('a.example', atHost)), { name: 'GatewayError' })
    await upstream.close()
  })

test('An upstream with a wildcard gets a call for each host that has set a cookie', async (t) => {
  const { call, received } = await upstreamWith(t, (_, res) => res.end(), {
    externalUrl: new URL('https://*.apps.example.com:8443'),
    hosts: ['*.apps.example.com'],
  })

  assert.equal(await call(cookieAt('a.apps.example.com', atHost), cookieAt('b.apps.example.com', atHost)), 200)

  assert.deepEqual(received.map(({ host }) => host).toSorted(), ['a.apps.example.com:8443', 'b.apps.example.com:8443'])
})
