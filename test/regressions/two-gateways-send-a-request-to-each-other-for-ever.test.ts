import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { fetchWhole, httpUpstream, startGateway } from '../proxy/support.ts'

/** A proxy that forwards requests to a configurable target and detects no loops. */
async function startProxy(t: Parameters<typeof httpUpstream>[0]) {
  const to = { origin: '' }
  let passed = 0
  const { port } = await httpUpstream(t, (req, res) => {
    passed += 1
    const options = { method: req.method ?? 'GET', headers: req.headers, agent: false }
    const sent = request(`${to.origin}${req.url}`, options, (response) => {
      res.writeHead(response.statusCode ?? 500, response.headers)
      response.pipe(res)
    })
    sent.on('error', () => res.destroy())
    req.pipe(sent)
  })
  return { port, to, passed: () => passed }
}

test('A request that comes back to a gateway through another gateway gets 508', async (t) => {
  const proxy = await startProxy(t)
  const one = await startGateway(t, proxy.port)
  const other = await startGateway(t, one.port)
  proxy.to.origin = other.origin

  for (const [each, gateway] of [one, other].entries()) {
    const { status, body } = await fetchWhole(gateway.origin, { path: '/page' })

    assert.equal(status, 508)
    assert.match(body, /Loop Detected/)
    assert.ok(proxy.passed() <= each + 1)
  }
})

test('A Gatehouse-Loop field of a client does not cause a loop error, and is forwarded', async (t) => {
  const seen: unknown[] = []
  const { port } = await httpUpstream(t, (req, res) => {
    seen.push(req.headers['gatehouse-loop'])
    res.end('served')
  })
  const { origin } = await startGateway(t, port)

  assert.equal((await fetchWhole(origin, { headers: { 'gatehouse-loop': 'elsewhere' } })).body, 'served')
  assert.match(String(seen[0]), /^elsewhere, [\w-]{12}$/)
})

test('A chain of gateways is not a loop', async (t) => {
  const { port } = await httpUpstream(t, (_, res) => res.end('served'))
  const inner = await startGateway(t, port)
  const outer = await startGateway(t, inner.port)

  for (let each = 0; each < 2; each += 1) assert.equal((await fetchWhole(outer.origin)).body, 'served')
})
