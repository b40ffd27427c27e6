import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { choose } from '../pages/support.ts'
import { httpUpstream } from '../proxy/support.ts'
import type { Visit } from '../support/browser.ts'
import { startChromium } from '../support/chromium.ts'
import { startWorld, type World } from '../support/world.ts'

const chromium = await startChromium()

const app = 'https://app.example.com'
const other = 'https://evil.example'
const script = { accept: '*/*', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-site' }
const preflight = {
  ...script,
  'access-control-request-method': 'PUT',
  'access-control-request-headers': 'content-type',
}

const settings = `trusted_origins: [${app}]
    cors: { methods: [GET, PUT], headers: [Content-Type], expose: [ETag], credentials: true, max_age: 5m }
    rules: [{ path: /open/*, access: public }, { path: /admin/*, require: { claim: groups, any_of: [nobody] } }]`

interface Received {
  readonly requests: string[]
  readonly world: World
}

/** An application that allows every origin to read its responses. */
async function start(t: TestContext, upstreamSettings: string): Promise<Received> {
  const requests: string[] = []
  const { port } = await httpUpstream(t, (req, res) => {
    requests.push(`${req.method} ${req.url}`)
    const fields = { 'access-control-allow-origin': '*', 'access-control-allow-methods': 'DELETE', vary: 'Accept' }
    res.writeHead(200, { ...fields, etag: '"1"' }).end('orders')
  })
  return { requests, world: await startWorld(t, { upstream: new URL(`http://127.0.0.1:${port}`), upstreamSettings }) }
}

function corsOf({ headers }: Visit): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('access-control-')))
}

const allowed = {
  'access-control-allow-origin': app,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'ETag',
}

for (const path of ['/orders', '/open/orders', '/admin/orders'])
  test(`The gateway responds to a preflight of a listed origin, and the application does not receive it: ${path}`, async (t) => {
    const { world, requests } = await start(t, settings)

    const response = await world
      .browser()
      .send(world.url + path, { method: 'OPTIONS', headers: { ...preflight, origin: app } })

    assert.equal(response.status, 204)
    assert.deepEqual(corsOf(response), {
      'access-control-allow-origin': app,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, PUT',
      'access-control-allow-headers': 'Content-Type',
      'access-control-max-age': '300',
    })
    assert.equal(response.headers['vary'], 'Origin')
    assert.equal(response.headers['set-cookie'], undefined)
    assert.deepEqual(requests, [])
  })

for (const origin of [other, 'null', `${app}:8443`, 'http://app.example.com', `${app}.evil.example`, `${app}, ${app}`])
  test(`An origin that is not listed gets no field: ${origin}`, async (t) => {
    const { world, requests } = await start(t, settings)
    const send = (path: string, method: string, headers: Readonly<Record<string, string>>) =>
      world.browser().send(world.url + path, { method, headers: { ...headers, origin } })

    for (const path of ['/orders', '/open/orders'])
      assert.deepEqual(corsOf(await send(path, 'OPTIONS', preflight)), {}, 'preflight')
    assert.deepEqual(requests, [])
    const open = await send('/open/orders', 'GET', script)
    assert.deepEqual([open.status, corsOf(open)], [200, {}], 'the field of the application is removed')
    assert.deepEqual([open.headers['vary']].flat().join(', '), 'Accept, Origin')
    assert.deepEqual(corsOf(await send('/orders', 'GET', script)), {})
  })

test('A page of a listed origin may read the responses of the application and of the gateway', async (t) => {
  const { world } = await start(t, settings)
  const jane = world.browser()
  const send = (path: string, method = 'GET', origin = app) =>
    jane.send(world.url + path, { method, headers: { ...script, origin } })

  const anonymous = await send('/orders')
  assert.deepEqual([anonymous.status, corsOf(anonymous)], [401, allowed])
  assert.match(String(anonymous.headers['vary']), /\bOrigin\b/)

  await jane.get(`${world.url}/orders`)
  const orders = await send('/orders')
  assert.deepEqual([orders.status, orders.body, corsOf(orders)], [200, 'orders', allowed])
  assert.deepEqual([(await send('/orders', 'PUT')).status], [200], 'trusted_origins decides who may change')
  const forbidden = await send('/admin/orders')
  assert.deepEqual([forbidden.status, corsOf(forbidden)], [403, allowed])
  const crossSite = await send('/orders', 'PUT', other)
  assert.deepEqual([crossSite.status, corsOf(crossSite)], [403, {}])
})

test('A page of a listed origin may read that the application is unreachable', async (t) => {
  const world = await startWorld(t, {
    upstream: new URL('http://127.0.0.1:1'),
    upstreamSettings: `cors: { origins: [${app}] }
    rules: [{ path: /*, access: public }]`,
  })

  const response = await world.browser().send(`${world.url}/`, { headers: { ...script, origin: app } })

  assert.deepEqual([response.status, corsOf(response)], [502, { 'access-control-allow-origin': app }])
})

test('Without cors, the application decides', async (t) => {
  const { world, requests } = await start(t, 'rules: [{ path: /open/*, access: public }]')
  const send = (path: string) =>
    world.browser().send(world.url + path, { method: 'OPTIONS', headers: { ...preflight, origin: app } })

  assert.equal((await send('/open/orders')).headers['access-control-allow-origin'], '*')
  const refused = await send('/orders')
  assert.deepEqual([refused.status, corsOf(refused)], [401, {}])
  assert.deepEqual(requests, ['OPTIONS /open/orders'])
})

test('In a browser, a page of a listed origin uses the session, and a page of another origin reads nothing', async (t) => {
  const origin = async () => {
    const { port } = await httpUpstream(t, (_, res) =>
      res.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Front end</title>'),
    )
    return `http://127.0.0.1:${port}`
  }
  const [listed, unlisted] = [await origin(), await origin()]
  const { world } = await start(
    t,
    `trusted_origins: [${listed}]\n    cors: { credentials: true, expose: [ETag], headers: [Content-Type] }`,
  )
  const jane = await chromium.person(t)
  const tab = await jane.tab()
  const put = (url: string) =>
    fetch(url, {
      method: 'PUT',
      credentials: 'include',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    }).then(
      async (response) => `${response.status} ${response.headers.get('etag')} ${await response.text()}`,
      () => 'blocked',
    )

  await tab.goto(listed)
  assert.match(await tab.evaluate(put, `${world.url}/orders`), /^401 null /)
  await tab.goto(`${world.url}/orders`)
  await choose(tab, 'Jane Doe')
  await tab.waitForURL(`${world.url}/orders`)
  await tab.goto(listed)
  assert.equal(await tab.evaluate(put, `${world.url}/orders`), '200 "1" orders')
  await tab.goto(unlisted)
  assert.equal(await tab.evaluate(put, `${world.url}/orders`), 'blocked')
})
