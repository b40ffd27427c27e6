import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { startWorld } from '../support/world.ts'

test('A client cannot send a field that request_headers removes: by its name, or by the beginning of its name', async (t) => {
  let told: IncomingHttpHeaders = {}
  const { port } = await httpUpstream(t, (req, res) => {
    told = req.headers
    res.end()
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    headers: '{ OIDC-CLAIM-sub: sub }',
    upstreamSettings: `request_headers: { remove: [OIDC_*, X_Deployer-User, Proxy-User, Proxy-R*] }
    rules: [{ path: /public/*, access: public }]
  other:
    url: http://localhost:${port}
    path: /other/
    rules: [{ path: /other/*, access: public }]`,
  })
  const names = [
    'OIDC-CLAIM-email',
    'oidc_claim_email',
    'Oidc-Access-Token',
    'OIDC.CLAIM.email',
    'x-deployer-user',
    'Proxy-User',
    'proxy-role',
    'OIDC-',
  ]
  const forged = { ...Object.fromEntries(names.map((name) => [name, 'admin'])), 'X-Other': 'passed', Oidcs: 'passed' }
  const jane = world.browser('jane')
  await jane.get(`${world.url}/`)

  const ask = (path: string) => jane.send(world.url + path, { headers: forged })
  for (const path of ['/public/', '/other/', '/']) {
    await ask(path)
    for (const name of [...names, 'oidc-claim-email', 'oidc-access-token', 'x-deployer-user'])
      assert.equal(told[name.toLowerCase()], undefined, `${name} at ${path}`)
    assert.deepEqual([told['x-other'], told['oidcs']], ['passed', 'passed'])
  }
  assert.equal(told['oidc-claim-sub'], 'jane')
})
