import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { startWorld } from '../support/world.ts'

test('A client cannot forge the identity headers of one upstream through another upstream of the same application', async (t) => {
  let told: IncomingHttpHeaders = {}
  const { port } = await httpUpstream(t, (req, res) => {
    told = req.headers
    res.end()
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    headers: '{ X-Remote-User: sub, Authorization: sub }',
    upstreamSettings: `rules: [{ path: /, methods: [GET] }]
  public:
    url: http://localhost:${port}
    path: /public/
    rules: [{ path: /public/*, access: public }]`,
  })

  const forged = { 'X-Remote-User': 'admin', X_Remote_User: 'admin', 'X-HTTP-Method-Override': 'DELETE' }
  await fetch(`${world.url}/public/`, { headers: { ...forged, Authorization: 'Bearer its-own', 'X-Other': 'passed' } })

  assert.equal(told['x-other'], 'passed')
  for (const name of Object.keys(forged)) assert.equal(told[name.toLowerCase()], undefined, name)
  // A token that the application checks itself.
  assert.equal(told.authorization, 'Bearer its-own')
})
