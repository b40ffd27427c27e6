import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { demoPeople, fieldsClaim } from '../../examples/demo/people.ts'
import { loadConfig } from '../../src/config/load.ts'
import { explain } from '../../src/explain/decision.ts'
import { personWith } from '../../src/explain/trial.ts'
import { headerPairs } from '../../src/explain/upstream-request.ts'
import { Browser, navigation } from '../support/browser.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { secrets, startWorld } from '../support/world.ts'

/** An application that records its requests. */
async function attentiveUpstream(t: TestContext) {
  let asked: { readonly url: string; readonly headers: readonly string[] } | undefined
  const server = createServer((req, res) => {
    asked = { url: req.url ?? '', headers: req.rawHeaders }
    res.writeHead(299).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const take = () => {
    const taken = asked
    asked = undefined
    return taken
  }
  return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), take }
}

async function send(url: string, method: string, path: string, headers: readonly string[]): Promise<IncomingMessage> {
  const { hostname, port } = new URL(url)
  const sent = request({ hostname, port, method, path, headers: [...headers], setHost: false, agent: false })
  const [response] = (await once(sent.end(), 'response')) as [IncomingMessage]
  response.resume()
  return response
}

const page = Object.entries(navigation).flat()
const script = ['Accept', 'application/json']

const requests: readonly (readonly [method: string, path: string, headers: readonly string[]])[] = [
  ['GET', '/', page],
  ['GET', '/', script],
  ['GET', '/orders?x=1', page],
  ['HEAD', '/orders', page],
  ['POST', '/orders', page],
  ['POST', '/orders', ['Origin', 'https://evil.example', ...script]],
  ['POST', '/orders', ['Sec-Fetch-Site', 'same-site', 'Origin', 'https://evil.example']],
  ['DELETE', '/orders/7', script],
  ['GET', '/static/logo.svg', page],
  ['GET', '/static/../admin/users', page],
  ['GET', '/static/..%2fadmin', page],
  ['GET', '/static/%2e%2e/admin', page],
  ['GET', '/static;x/../admin', page],
  ['GET', '/admin;x=1/users', page],
  ['GET', '/admin/users', page],
  ['GET', '/ADMIN/users', page],
  ['GET', '/api/orders', page],
  ['GET', '/news/today', page],
  ['GET', '/logout', page],
  ['GET', '/logout;jsessionid=1', page],
  ['POST', '/logout', page],
  ['TRACE', '/', page],
  ['GET', '/orders/%00', page],
  ['GET', '/.gatehouse/nope', page],
  ['GET', '/.Gatehouse/sign-in', page],
  ['DELETE', '/.gatehouse/sign-out', script],
  ['GET', '/orders//7/./x', page],
  ['GET', `/orders?${'x'.repeat(3000)}`, page],
  [
    'GET',
    '/orders',
    [...page, 'X-Remote-User', 'jane', 'X_Remote_User', 'jane', 'X-Request-Id', 'mine', 'TE', 'trailers'],
  ],
  ['GET', '/orders', [...script, 'Connection', 'X-Foo', 'X-Foo', '1', 'X-Forwarded-For', '192.0.2.1', 'Cookie', 'a=b']],
  ['GET', '/orders', [...script, ...Array.from({ length: 101 }, (_, n) => [`X-H${n}`, '1']).flat()]],
]

const settings = `rules:
      - { path: /static/*, access: public }
      - { path: /news/*, access: optional }
      - { path: /api/*, unauthenticated: 401 }
      - { path: /admin/*, require: { claim: fields.groups, any_of: [admins] } }
    logout: { paths: [/logout], cookies: [JSESSIONID] }`

test('gatehouse explain predicts what the gateway does: the result, the target of the redirect and each forwarded header', async (t) => {
  const upstream = await attentiveUpstream(t)
  const world = await startWorld(t, { upstream: upstream.url, upstreamSettings: settings })
  const [replica] = world.replicas
  const loaded = loadConfig(replica?.file ?? '', secrets)
  assert.ok(loaded.ok)
  const { host } = new URL(world.url)

  for (const name of [undefined, 'jane', 'zoe', 'noa']) {
    const person = demoPeople.find(({ sub }) => sub === name)
    const { fields, ...claims } = person ?? {}
    const who = personWith(person && { ...claims, [fieldsClaim]: fields ?? {} }, loaded.config)
    const browser = world.browser(name)
    if (name !== undefined) await browser.get(`${world.url}/`)

    for (const [method, target, headers] of requests) {
      const cookie = name === undefined ? [] : ['Cookie', browser.cookieHeader]
      const rawHeaders = ['Host', host, ...headers, ...cookie]
      upstream.take()

      const response = await send(world.url, method, target, rawHeaders)
      const explained = explain({ method, target, rawHeaders, peer: '127.0.0.1' }, who, loaded.config)

      const what = `${name ?? 'nobody'}: ${method} ${target} ${headers.join(' ')}`
      const { decision } = explained
      assert.equal(response.statusCode, decision.outcome === 'pass' ? 299 : decision.status, what)
      if (decision.status === 303) assert.equal(response.headers.location, decision.location, what)
      const asked = upstream.take()
      assert.equal(asked !== undefined, decision.outcome === 'pass', what)
      if (asked === undefined || explained.upstream === undefined) continue
      assert.equal(`${upstream.url.origin}${asked.url}`, explained.upstream.url, what)
      const ofTheConnection = /^(connection|keep-alive|content-length|transfer-encoding|x-request-id|gatehouse-loop)$/i
      const plain = (pairs: readonly (readonly [string, string])[]) =>
        pairs
          .filter(([header]) => !ofTheConnection.test(header))
          .map((pair) => pair.join(': '))
          .sort()
      const told = [...explained.upstream.others, ...explained.upstream.identity]
      assert.deepEqual(plain(headerPairs(asked.headers)), plain(told), what)
    }
  }
})

test('The page of a denied request has an id, and the log names the reason, the rule and the fix under this id', async (t) => {
  const around = await prepareGateway(t, {
    rules: '[{ path: /admin/*, require: { claim: fields.groups, any_of: [nobody] } }]',
  })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')
  const refused = await jane.get(`${around.url}/admin/users`)
  assert.equal(refused.status, 403)
  const id = /Request ID ([\w-]+)/.exec(refused.body)?.[1] ?? assert.fail(refused.body)
  await gateway.said('access.denied')
  gateway.child.kill('SIGTERM')
  await gateway.ended
  // The format of `docker compose logs` and `kubectl logs --prefix`.
  const log = join(folderWith(t, {}), 'gateway.log')
  writeFileSync(log, gateway.out().replaceAll(/^/gm, 'gatehouse-1  | '))

  const told = startCommand(t, ['explain', '--log', log, id])
  assert.equal(await told.ended, 0, told.err())

  assert.match(told.out(), new RegExp(`^request ${id}\n`))
  assert.match(
    told.out(),
    /GET \/admin\/users was denied to jane by the rule at .*gateway\.yaml:\d+ of orders: fields\.groups/,
  )
  assert.match(told.out(), /fields\.groups: the claim is absent/)
  assert.match(
    told.out(),
    /GET 127\.0\.0\.1\/admin\/users, with the session .*, from 127\.0\.0\.1: status 403 by the gateway/,
  )
  assert.match(
    told.out(),
    /to do {5}compare the name of the claim with .*scopes of the provider.*id_token_claims of the provider/,
  )

  const unknown = startCommand(t, ['explain', '--log', log, 'no-such-request'])
  assert.equal(await unknown.ended, 1)
  assert.match(unknown.err(), /gateway\.log has no line about the request no-such-request/)
})
