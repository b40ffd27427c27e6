import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { check } from '../../src/cli/check.ts'
import { readExplainCall } from '../../src/cli/explain.ts'
import { issueCertificates } from '../support/certificates.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'
import { root } from '../support/command.ts'
import { secrets } from '../support/world.ts'

const examples = join(root, 'examples')
const read = (...path: readonly string[]) => readFileSync(join(examples, ...path), 'utf8')

for (const [folder, note] of [
  ['forward-auth', /cannot close WebSockets and event streams/],
  ['tls-front', /is valid; its 2 tests pass/],
] as const)
  test(`gatehouse check accepts examples/${folder}/gateway.yaml without a warning, and its tests pass`, async () => {
    const { said, terminal } = recordingTerminal(secrets)

    const code = await check({ ...terminal, file: join(examples, folder, 'gateway.yaml') })

    assert.deepEqual([code, said.err], [0, ''])
    assert.match(said.out, note)
  })

for (const [file, warns] of [
  // The load balancer asks from outside, and a security group lets nobody else in.
  ['aws-alb.yaml', /^.*admin\.listen.*$/m],
  ['cloudflare.yaml', /^$/],
] as const)
  test(`gatehouse check accepts examples/cloud-front/${file}, and its tests pass`, async (t) => {
    const { server } = issueCertificates()
    const { said, terminal } = recordingTerminal(secrets)
    const text = read('cloud-front', file)
      .replace('/run/tls/tls.crt', server.cert ?? '')
      .replace('/run/tls/tls.key', server.key ?? '')

    const code = await check({ ...terminal, file: join(folderWith(t, { [file]: text }), file) })

    assert.equal(code, 0, said.err)
    assert.match(said.err, warns)
    assert.match(said.out, /is valid; its 2 tests pass/)
  })

test('explain shows the decision about a request that another proxy carries', async (t) => {
  const folder = folderWith(t, { 'claims.json': JSON.stringify({ sub: 'jane' }) })
  const config = join(examples, 'forward-auth', 'gateway.yaml')
  const call = readExplainCall([
    '--config',
    config,
    '--as',
    join(folder, 'claims.json'),
    'https://wiki.example.com/page',
  ])
  assert.ok('carryOut' in call)
  const { said, terminal } = recordingTerminal(secrets)

  const code = await call.carryOut(terminal)

  assert.deepEqual([code, said.err], [0, ''])
  assert.match(said.out, /\/page \(another proxy carries the request\)/)
  assert.match(said.out, /X-Remote-User: jane/)
})

interface GatewayFile {
  readonly upstreams: { readonly wiki: { readonly headers: Readonly<Record<string, unknown>> } }
}

const { upstreams } = parse(read('forward-auth', 'gateway.yaml')) as GatewayFile
const names = [...Object.keys(upstreams.wiki.headers), 'Cookie']

for (const proxy of ['nginx', 'haproxy', 'caddy', 'traefik', 'envoy'])
  for (const file of readdirSync(join(examples, 'forward-auth', proxy)).filter(
    (each) => !/check-request|\.cfg$/.test(each),
  ))
    test(`examples/forward-auth/${proxy}/${file} names each header that the gateway sets`, () => {
      // Over gRPC the gateway names them itself.
      const expected = file === 'envoy-grpc.yaml' ? [] : names

      const text = read('forward-auth', proxy, file).toLowerCase()

      assert.deepEqual(
        expected.filter((name) => !text.includes(name.toLowerCase())),
        [],
      )
    })

test('Traefik replaces each header that the gateway sets, and asks at the endpoint', () => {
  const { http } = parse(read('forward-auth', 'traefik', 'dynamic.yaml')) as {
    readonly http: {
      readonly middlewares: {
        readonly gatehouse: {
          readonly forwardAuth: { readonly address: string; readonly authResponseHeaders: string[] }
        }
      }
    }
  }
  const { address, authResponseHeaders } = http.middlewares.gatehouse.forwardAuth

  assert.equal(address, 'http://127.0.0.1:8080/.gatehouse/forward-auth')
  for (const name of [...names, 'X-Gatehouse-Identity', 'X-Original-URL'])
    assert.ok(authResponseHeaders.includes(name), name)
})
