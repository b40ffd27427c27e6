import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Evaluations } from '../../src/authzen/evaluations.ts'
import { systemClock } from '../../src/core/clock.ts'
import { TrustedProxies } from '../../src/http/forwarded.ts'
import { requestFacts } from '../../src/http/request-facts.ts'
import { Shares } from '../../src/limits/fair-queue.ts'
import { Metrics } from '../../src/observe/metrics.ts'
import { auditEventsIn } from '../support/audit-schema.ts'
import type { Browser } from '../support/browser.ts'
import { decide, type DecisionPoint, startDecisionPoint } from '../support/decision-point.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { until } from '../support/until.ts'
import { secrets, startWorld, type World, type WorldOptions } from '../support/world.ts'

interface Decided extends World {
  readonly point: DecisionPoint
  /** The requests that the application received. */
  readonly application: readonly unknown[]
  readonly jane: Browser
  /** The status of a request of Jane. */
  status(path: string, method?: string): Promise<number>
}

async function startDecided(
  t: TestContext,
  { own = '', upstreamSettings = '', ...options }: WorldOptions & { readonly own?: string } = {},
): Promise<Decided> {
  const point = await startDecisionPoint(t)
  const { url: upstream, seen: application } = await startRecordingApplication(t)
  const world = await startWorld(t, {
    upstream,
    upstreamSettings: `authorize_with: { url: "${point.url}"${own} }\n    ${upstreamSettings}`,
    ...options,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  point.asked.length = 0
  application.length = 0
  const status = async (path: string, method = 'GET') => (await jane.fetch(`${world.url}${path}`, { method })).status
  return { ...world, point, application, jane, status }
}

test('The policy decision point learns who wants to do what, and no cookie or token', async (t) => {
  const authorization = ', authorization: { env: SIGNALS_AUTHORIZATION }'
  const world = await startDecided(t, { own: `${authorization}, claims: [email, given_name]` })
  let sent: string | undefined
  const { point } = world
  point.answer = (req, res, evaluation) => {
    sent = JSON.stringify(req.headers)
    decide({ decision: true })(req, res, evaluation)
  }

  assert.equal(await world.status('/echo/orders/7?part=%C3%A4', 'DELETE'), 200)

  assert.deepEqual(point.asked, [
    {
      subject: {
        type: 'user',
        id: 'jane',
        properties: { iss: world.provider.issuer, email: 'jane.doe@example.com', given_name: 'Jane' },
      },
      action: { name: 'DELETE' },
      resource: {
        type: 'route',
        id: '/echo/orders/7',
        properties: { upstream: 'orders', hostname: '127.0.0.1', path: '/echo/orders/7', query: 'part=%C3%A4' },
      },
      context: { client_address: '127.0.0.1', credentials: 'session' },
    },
  ])
  assert.equal((JSON.parse(sent ?? '{}') as Record<string, unknown>)['authorization'], secrets.SIGNALS_AUTHORIZATION)
  assert.doesNotMatch(sent ?? '', /cookie/i)
})

test('A denial is 403 with the reason in the audit log, and the application gets nothing', async (t) => {
  const world = await startDecided(t)
  world.point.answer = decide({ decision: false, context: { reason: 'not the owner\u001b[31m' } })

  assert.equal(await world.status('/echo'), 403)

  assert.equal(world.application.length, 0)
  const events = world.replicas.flatMap(({ log }) => auditEventsIn(log))
  const denied = events.find(({ message }) => message === 'access.denied')
  assert.equal(denied?.fields['code'], 'ERR_FORBIDDEN')
  assert.equal(denied?.fields['reason'], 'authorize_with denies it: {"reason":"not the owner\\u001b[31m"}')
})

const unusable: Readonly<Record<string, DecisionPoint['answer']>> = {
  'is an error': (_req, res) => void res.writeHead(500).end('{"decision":true}'),
  'is a redirect': (_req, res) => void res.writeHead(302, { location: '/permit' }).end(),
  'is HTML': (_req, res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<p>true'),
  'is empty': (_req, res) => void res.writeHead(200).end(),
  'has no decision': decide({}),
  'is a list': decide([{ decision: true }]),
  'has a decision that is text': decide({ decision: 'true' }),
  'has a decision that is a number': decide({ decision: 1 }),
  'breaks off': (_req, res) => {
    res.writeHead(200, { 'content-length': '100' }).write('{"decision":true}')
    setImmediate(() => res.destroy())
  },
  'has 10 MB': (_req, res) => void res.writeHead(200).end(JSON.stringify({ decision: true, x: 'x'.repeat(10 << 20) })),
  'never comes': () => {},
}

for (const [what, answer] of Object.entries(unusable))
  test(`When the decision ${what}, the response is 503, and the application gets nothing`, async (t) => {
    const world = await startDecided(t, { own: ', timeout: 200ms' })
    world.point.answer = answer

    const response = await world.jane.fetch(`${world.url}/echo`)

    assert.equal(response.status, 503)
    assert.match(response.body, /It cannot be decided at the moment/)
    assert.equal(world.application.length, 0)
    const ended = () => world.replicas[0]?.access.find(({ status }) => status === 503)
    await until('the access log has the request', () => ended() !== undefined)
    assert.equal(ended()?.['upstream'], 'orders')
    assert.notEqual(ended()?.['session'], undefined)
    world.point.answer = decide({ decision: true })
    assert.equal(await world.status('/echo'), 200, 'nothing of it is kept')
  })

test('The rules come first, and requests without a person or of other rules are not asked about', async (t) => {
  const rules = `rules:
      - { path: /echo/denied, require: { claim: groups, any_of: [nobody] } }
      - { path: /echo/alone, authorize_with: false }
      - { path: /echo/public, access: public }
      - { path: /echo/optional, access: optional }`
  const world = await startDecided(t, { upstreamSettings: rules })
  world.point.answer = decide({ decision: false })

  assert.equal(await world.status('/echo/denied'), 403)
  assert.equal(await world.status('/echo/alone'), 200)
  assert.equal(await world.status('/echo/public'), 200)
  assert.equal((await fetch(`${world.url}/echo/optional`)).status, 200)
  assert.equal((await fetch(`${world.url}/echo`, { redirect: 'manual' })).status, 401)
  assert.deepEqual(world.point.asked, [])
  assert.equal(await world.status('/echo/optional'), 403)
  assert.equal(await world.status('/echo'), 403)
  assert.equal(world.point.asked.length, 2)
})

test('A rule that is only observed lets the request through, and the audit log has the denial', async (t) => {
  const rules = `rules: [{ path: /echo, mode: observe, require: { claim: sub, any_of: [jane] } }]`
  const world = await startDecided(t, { upstreamSettings: rules })
  world.point.answer = decide({ decision: false })

  assert.equal(await world.status('/echo'), 200)

  const events = world.replicas.flatMap(({ log }) => auditEventsIn(log))
  assert.ok(events.some(({ message }) => message === 'access.would_be_denied'))
})

test('A decision is used again only for the same request, and only as long as Cache-Control says', async (t) => {
  const world = await startDecided(t)
  const { point } = world
  const asked = async (cacheControl: string, first: string, second = first): Promise<number> => {
    point.asked.length = 0
    point.answer = decide({ decision: true }, cacheControl === '' ? {} : { 'cache-control': cacheControl })
    assert.equal(await world.status(first), 200)
    assert.equal(await world.status(second), 200)
    return point.asked.length
  }

  assert.equal(await asked('', '/echo/1'), 2)
  assert.equal(await asked('max-age=0', '/echo/2'), 2)
  assert.equal(await asked('no-store, max-age=60', '/echo/3'), 2)
  assert.equal(await asked('private, max-age=60', '/echo/4', '/echo/5'), 2)
  assert.equal(await asked('private, max-age=60', '/echo/6'), 1)
  point.answer = decide({ decision: false })
  assert.equal(await world.status('/echo/6'), 200)
  world.moveClock(61_000)
  assert.equal(await world.status('/echo/6'), 403)
})

test('A kept decision about one person is not used for another', async (t) => {
  const world = await startDecided(t)
  const samir = world.browser('samir')
  await samir.get(`${world.url}/`)
  world.point.answer = (req, res, evaluation) => {
    const { id } = evaluation['subject'] as { readonly id: string }
    decide({ decision: id === 'jane' }, { 'cache-control': 'max-age=300' })(req, res, evaluation)
  }

  assert.equal(await world.status('/echo'), 200)
  assert.equal((await samir.fetch(`${world.url}/echo`)).status, 403)
  assert.equal(await world.status('/echo'), 200)
})

test('A flood of requests that wait for decisions is bounded', async (t) => {
  const world = await startDecided(t, { own: ', timeout: 10s' })
  const { point } = world
  const held: (() => void)[] = []
  point.answer = (req, res, evaluation) => void held.push(() => decide({ decision: true })(req, res, evaluation))
  const statuses: number[] = []

  const flood = Array.from({ length: 300 }, async (_, n) => statuses.push(await world.status(`/echo/${n}`)))
  await until('the rest is refused', () => statuses.length >= 108)
  point.answer = decide({ decision: true })
  for (const release of held.splice(0)) release()
  await Promise.all(flood)

  assert.deepEqual(
    [200, 503].map((each) => statuses.filter((status) => status === each).length),
    [192, 108],
  )
})

test('Equal requests at the same time ask once', async (t) => {
  const { url, asked } = await startDecisionPoint(t)
  const authorizeWith = { url, timeoutMs: 1_000, claims: [], authorization: undefined, ca: undefined }
  const evaluations = new Evaluations([{ authorizeWith }], {
    ...{ clock: systemClock, metrics: new Metrics() },
    placesOf: () => new Shares(1),
  })
  t.after(() => evaluations.close())
  const request = {
    facts: requestFacts({ method: 'GET', url: '/', headers: { host: 'a' }, socket: {} }, new TrustedProxies([]), ''),
    upstream: { name: 'orders' },
    rule: {},
    record: { iss: 'i', sub: 'jane', claims: {}, tokens: {}, absolute_expires_at: 0 },
    caller: undefined,
  }

  const decisions = await Promise.all([1, 2, 3].map(async () => evaluations.evaluate(request, authorizeWith)))

  assert.deepEqual(
    decisions,
    [1, 2, 3].map(() => ({ kind: 'permitted' })),
  )
  assert.equal(asked.length, 1)
})

test('A claim that the provider has withheld is not taken for an absent one', async (t) => {
  const world = await startDecided(t, { own: ', claims: [groups]' })
  world.provider.bend('/oauth/userinfo', (body) => {
    delete body['groups']
    body['_claim_names'] = { groups: 'src1' }
  })
  const other = world.browser()
  await other.get(`${world.url}/`)
  world.point.asked.length = 0

  const response = await other.fetch(`${world.url}/echo`)

  assert.equal(response.status, 403)
  assert.match(response.body, /did not say whether/)
  assert.deepEqual(world.point.asked, [])
})
