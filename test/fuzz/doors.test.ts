import assert from 'node:assert/strict'
import { connect } from 'node:http2'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Claims } from '../../src/core/claims.ts'
import { explain } from '../../src/explain/decision.ts'
import { personWith } from '../../src/explain/trial.ts'
import { startBed } from '../advisories/support.ts'
import { envoyClient } from '../check-requests/envoy-client.ts'
import { freePort } from '../support/free-port.ts'
import { request as requestOverHttp2 } from '../support/http2.ts'
import { startStrictHttp2Upstream } from '../support/strict-http2-upstream.ts'
import { fuzz, fuzzMs } from './fuzzing.ts'

/** How the gateway decides about a request, in the words that all doors have. */
type Outcome = 'pass' | 'sign in' | 'forbidden' | 'ambiguous' | 'not found'

const people: Readonly<Record<string, Claims>> = {
  staff: { sub: 'staff', groups: ['staff'] },
  admin: { sub: 'admin', groups: ['staff', 'admins'] },
  suspended: { sub: 'suspended', groups: ['admins', 'suspended'] },
  hidden: { sub: 'hidden', _claim_names: { groups: 'src1' } },
}
const rules = `[
      { path: /public/*, access: public },
      { path: /admin/*, access_tokens: true, require: [{ claim: groups, any_of: [admins] }, { claim: groups, none_of: [suspended] }] },
      { path: /posts/*, methods: [POST], access_tokens: true, require: { claim: groups, any_of: [admins] } },
      { path: /*, access_tokens: true, require: { not: { claim: groups, any_of: [suspended] } } } ]`

const segment = fc.constantFrom(
  ...['a', 'admin', 'Admin', 'public', 'posts', 'x', '', '', '.', '..', 'a:1', 'a@b', 'admin;v=1', '%61dmin', 'a%2Fb'],
  ...['admin%2Fx', '%2e', '%2e%2e', '%2F', 'admin.', 'localhost', '%3Fa', '*', 'http:', '[::1]'],
)
const request = fc.record({
  method: fc.constantFrom('GET', 'GET', 'POST', 'DELETE'),
  path: fc
    .tuple(fc.constantFrom('/', '/', '/', '//', '///'), fc.array(segment, { minLength: 1, maxLength: 4 }))
    .map(([start, segments]) => start + segments.join('/')),
  query: fc.constantFrom('', '?a=/../admin'),
  person: fc.constantFrom(undefined, ...Object.keys(people)),
})

test('A request has one admission, whichever door it comes through', async (t) => {
  const envoyPort = await freePort()
  const overHttp2 = await startStrictHttp2Upstream(t)
  const bed = await startBed(t, {
    rules,
    listen: (address) => `{ address: "${address}", h2c: true }`,
    settings: `trusted_proxies: [127.0.0.1]\next_authz: { listen: 127.0.0.1:${envoyPort} }\nlimits: { per_client: { connections: 1000 } }`,
    upstream: `hosts: [carried.example.com]
    access_tokens: { audience: [https://api.example.com] }
  asked:
    hosts: [asked.example.com]
    external_url: http://asked.example.com
    forward_auth: true
    headers: { X-Remote-User: sub, X-Email: email, X-Groups: { claim: groups, join: "," } }
    rules: ${rules.replaceAll('access_tokens: true, ', '')}
  http2:
    hosts: [http2.example.com]
    url: ${overHttp2.url.origin}
    protocol: h2c
    headers: { X-Remote-User: sub, X-Email: email, X-Groups: { claim: groups, join: "," } }
    rules: ${rules.replaceAll('access_tokens: true, ', '')}`,
  })
  const session = connect(bed.origin)
  t.after(() => session.destroy())
  const envoy = envoyClient(t, envoyPort)
  const { config } = bed
  const cookies = new Map<string, string>()
  for (const [name, person] of Object.entries(people)) cookies.set(name, await bed.signIn(person))
  const tokenOf = (person: string | undefined) => {
    const now = Math.floor(Date.now() / 1000)
    const claims = {
      iss: bed.provider.issuer,
      aud: 'https://api.example.com',
      client_id: 'cli',
      iat: now,
      exp: now + 300,
    }
    // Without a person, a token that is not accepted.
    return bed.provider.token(
      { ...claims, ...(person === undefined ? { exp: now - 300 } : people[person]) },
      { typ: 'at+jwt' },
    )
  }

  const arrived = () => bed.seen.length + overHttp2.seen.length
  const send = async (lines: readonly string[]): Promise<Outcome> => {
    const before = arrived()
    const text = await bed.raw([...lines, 'Connection: close', '', ''].join('\r\n'))
    const outcome = outcomeOf(Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]), text)
    assert.equal(arrived() - before, outcome === 'pass' && !lines.join().includes('forward-auth') ? 1 : 0, text)
    return outcome
  }
  /** As a client that speaks HTTP/2. */
  const stream = async (host: string, method: string, target: string, cookie: string | undefined): Promise<Outcome> => {
    const before = arrived()
    const fields = { ':method': method, ':path': target, ':authority': host, ...(cookie !== undefined && { cookie }) }
    const { status, body } = await requestOverHttp2(session, fields, method === 'POST' ? '' : undefined)
    const outcome = outcomeOf(status, body)
    assert.equal(arrived() - before, outcome === 'pass' ? 1 : 0, body)
    return outcome
  }
  const explained = (host: string, method: string, target: string, person: string | undefined): Outcome => {
    const who = personWith(person === undefined ? undefined : people[person], config)
    const { decision } = explain({ method, target, rawHeaders: ['Host', host], peer: undefined }, who, config)
    return decision.outcome === 'pass' ? 'pass' : outcomeOf(decision.status ?? 0, JSON.stringify(decision))
  }
  const counts = new Map<Outcome, number>()

  const outcomes = ['pass', 'sign in', 'forbidden', 'ambiguous'] as const
  const hasShown = () => outcomes.every((outcome) => counts.has(outcome))
  const holds = async ({ method, path, query, person }: typeof request extends fc.Arbitrary<infer T> ? T : never) => {
    const target = path + query
    const cookie = person === undefined ? [] : [`Cookie: ${cookies.get(person)}`]
    const head = [`${method} ${target} HTTP/1.1`, 'Host: carried.example.com']
    const content = method === 'POST' ? ['Content-Length: 0'] : []
    const described = {
      'X-Forwarded-Method': method,
      'X-Forwarded-Proto': 'http',
      'X-Forwarded-Host': 'asked.example.com',
      'X-Forwarded-Uri': target,
      'X-Forwarded-For': '192.0.2.7',
    }
    const { status, denied_response: denied } = await envoy.call('Check', {
      attributes: {
        source: { address: { socket_address: { address: '192.0.2.7', port_value: 4711 } } },
        request: {
          http: {
            ...{ id: '1', method, path: target, host: 'asked.example.com', scheme: 'http', protocol: 'HTTP/1.1' },
            headers: { ...(person !== undefined && { cookie: cookies.get(person) ?? '' }) },
          },
        },
      },
    })
    const ofPerson = person === undefined ? undefined : cookies.get(person)
    const carried = {
      proxy: await send([...head, ...content, ...cookie]),
      'proxy to HTTP/2': await send([...head.with(1, 'Host: http2.example.com'), ...content, ...cookie]),
      'HTTP/2': await stream('carried.example.com', method, target, ofPerson),
      'HTTP/2 to HTTP/2': await stream('http2.example.com', method, target, ofPerson),
      bearer: await send([...head, ...content, `Authorization: Bearer ${tokenOf(person)}`]),
      ...(method === 'GET' && {
        upgrade: await send([...head, 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', ...cookie]),
      }),
      explain: explained('carried.example.com', method, target, person),
    }
    const asked = {
      forwardAuth: await send([
        ...['GET /.gatehouse/forward-auth HTTP/1.1', `Host: 127.0.0.1:${bed.port}`, ...cookie],
        ...Object.entries(described).map((field) => field.join(': ')),
      ]),
      extAuthz: status.code === 0 ? 'pass' : outcomeOf(denied?.status.code ?? 0, denied?.body ?? ''),
      explain: explained('asked.example.com', method, target, person),
    }
    const told = `${method} ${target} of ${person}: ${JSON.stringify({ carried, asked })}`
    const [one, two] = [carried.proxy, asked.forwardAuth]
    counts.set(one, (counts.get(one) ?? 0) + 1).set(two, (counts.get(two) ?? 0) + 1)
    for (const outcome of Object.values(carried)) assert.equal(outcome, one, told)
    for (const outcome of Object.values(asked)) assert.equal(outcome, two, told)
    // Another proxy carries the path as it is, so more readings of it have to meet the same rule.
    if (two !== 'ambiguous') assert.equal(two, one, told)
    if (two !== 'pass') return
    for (const reading of readingsOf(path)) {
      const meant = explained('carried.example.com', method, reading, person)
      assert.equal(meant, 'pass', `${told}, which an application may read as ${reading}`)
    }
  }
  await fuzz(t, request, holds, fuzzMs, hasShown)
  t.diagnostic(JSON.stringify(Object.fromEntries(counts)))
  for (const outcome of outcomes) assert.ok(counts.has(outcome), outcome)
})

/** The path of a target for an application that resolves it like a reference (RFC 3986 §5.2). */
function readingsOf(path: string): readonly string[] {
  const base = 'http://application.example'
  const resolved = URL.canParse(path, base) ? [new URL(path, base).pathname] : []
  return [path, ...resolved, path.replace(/^\/\/[^/]*/, '') || '/', path.replaceAll(/\/{2,}/g, '/')]
}

function outcomeOf(status: number, text: string): Outcome {
  switch (status) {
    case 200:
      return 'pass'
    case 303:
    case 401:
      return 'sign in'
    case 403:
      return 'forbidden'
    case 404:
      return 'not found'
    case 400:
      return 'ambiguous'
    default:
      assert.fail(`unexpected status ${status}: ${text}`)
  }
}
