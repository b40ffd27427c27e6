import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../src/explain/decision.ts'
import { personWith } from '../../src/explain/trial.ts'
import { startAskedWorld } from '../check-requests/asking.ts'
import { configOf } from '../doctor/support.ts'

const authorities = ['//a', '///a', '//a:1', '//a@b', '//[::1]', '//a%2Fb', '//.gatehouse']

test('A path that an application may read as an authority and a path needs the access of that path', async (t) => {
  const world = await startAskedWorld(t, {
    wiki: `
  app:
    forward_auth: true
    hosts: [app.example.com]
    external_url: http://app.example.com
    headers: { X-Remote-User: sub }
    rules: [{ path: /admin/*, require: { claim: sub, any_of: [admin] } }]`,
  })
  const cookie = await world.signIn('jane')
  const ask = (uri: string) =>
    world.ask(world.described({ 'X-Forwarded-Host': 'app.example.com', 'X-Forwarded-Uri': uri, Cookie: cookie }))

  assert.equal((await ask('/admin/x')).status, 403)
  for (const authority of authorities)
    for (const path of ['/admin/x', '/Admin', '/%61dmin/x', '/admin;v=1', '//admin', '/admin?a=1'])
      assert.ok([400, 404].includes((await ask(authority + path)).status), authority + path)
  // A link with a slash too many still works.
  for (const path of ['//index.php', '//a/page?b=//admin', '//']) assert.equal((await ask(path)).status, 200, path)
})

test('explain reads the path as the other proxy carries it', (t) => {
  const config = configOf(t, {
    settings: 'trusted_proxies: [127.0.0.1]',
    upstream: `forward_auth: true
    rules: [{ path: /admin/*, require: { claim: groups, any_of: [admins] } }]`,
  })
  const jane = personWith({ sub: 'jane' }, config)
  const rawHeaders = ['Host', 'orders.example.com']

  for (const target of ['//a/admin/x', 'https://orders.example.com//a/admin/x']) {
    const { decision } = explain({ method: 'GET', target, rawHeaders, peer: undefined }, jane, config)
    assert.equal(decision.code, 'ERR_REQUEST_TARGET', target)
  }
})
