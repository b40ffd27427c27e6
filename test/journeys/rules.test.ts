import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld, type World } from '../support/world.ts'

function audited(world: World, event: string) {
  return world.replicas.flatMap(({ log }) => log.filter(({ message }) => message === event).map(({ fields }) => fields))
}

test('A rule that is only observed gives access, and the audit log says whom it would have denied, and why', async (t) => {
  const world = await startWorld(t, {
    upstreamSettings: `rules:
      - { name: Admins only, path: /admin/*, mode: observe, require: { claim: fields.groups, any_of: [admins] } }`,
  })
  const samir = world.browser('samir')

  const page = await samir.get(`${world.url}/admin/`)

  assert.equal(page.status, 200)
  const [event, ...more] = audited(world, 'access.would_be_denied')
  assert.deepEqual(
    [event?.['sub'], event?.['rule_name'], event?.['reason'], event?.['path'], event?.['code']],
    ['samir', 'Admins only', 'fields.groups: holds none of admins', '/admin/', 'ERR_FORBIDDEN'],
  )
  assert.deepEqual(more, [])
  assert.deepEqual(audited(world, 'access.denied'), [])
  const anonymous = await world.browser('jane').send(`${world.url}/admin/`)
  assert.equal(anonymous.status, 303)
})

test('The page and the problem document of a denied request, and the audit log, name the rule', async (t) => {
  const world = await startWorld(t, {
    upstreamSettings: `rules:
      - { name: 'Admins <only> & more', path: /admin/*, require: { claim: fields.groups, any_of: [admins] } }
      - { path: /closed/*, require: { claim: fields.groups, any_of: [admins] } }`,
  })
  const samir = world.browser('samir')
  await samir.get(`${world.url}/`)

  const page = await samir.get(`${world.url}/admin/`)
  const problem = await samir.get(`${world.url}/admin/`, {
    headers: { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
  })
  const other = await samir.get(`${world.url}/closed/`)

  assert.equal(page.status, 403)
  assert.match(page.body, /403 · Request ID [\w-]+ · Rule: Admins &lt;only&gt; &amp; more/)
  assert.equal((JSON.parse(problem.body) as { rule?: string }).rule, 'Admins <only> & more')
  assert.doesNotMatch(other.body, /Rule/)
  assert.deepEqual(
    audited(world, 'access.denied').map((event) => event['rule_name']),
    ['Admins <only> & more', undefined],
  )
})
