import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAskedWorld } from '../check-requests/asking.ts'
import { makeKey, send, startKeyWorld } from '../support/key-world.ts'
import { startRecordingApplication } from '../support/recording-application.ts'

const base64 = (text: string, encoding: 'utf8' | 'latin1' = 'utf8') => Buffer.from(text, encoding).toString('base64')

test('No application gets a key in credentials that are malformed, or in a field that names a scheme', async (t) => {
  const { url: upstream, seen } = await startRecordingApplication(t)
  const world = await startKeyWorld(t, {
    upstream,
    headers: '{ X-Remote-User: sub }',
    upstreamSettings: `keys: {}
    rules: [{ path: /dav/*, keys: true }, { path: /public/*, access: public }]`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const key = await makeKey(jane, world)
  const basic = base64(`any:${key}`)
  const cases: readonly (readonly [what: string, headers: Record<string, string>])[] = [
    ['twice', { authorization: `Basic ${basic}, Basic ${basic}` }],
    ['beside a long name', { authorization: `Basic ${base64(`${'a'.repeat(800)}:${key}`)}` }],
    ['beside a control character', { authorization: `Basic ${base64(`a\u0001:${key}`)}` }],
    ['beside a name in Latin-1', { authorization: `Basic ${base64(`jäne:${key}`, 'latin1')}` }],
    ['without a name', { authorization: `Basic ${base64(key)}` }],
    ['in base64url', { authorization: `Basic ${Buffer.from(`~~~>:${key}`).toString('base64url')}` }],
    ['cut', { authorization: `Basic ${basic.slice(0, -8)}` }],
    ['with another scheme', { authorization: `Negotiate ${basic}` }],
    ['as a token in another field', { 'x-other': `Bearer ${key}` }],
    ['in quotes', { 'x-other': `"${key}"` }],
    ['in a list', { 'x-other': `a, ${key}` }],
    ['as a cookie of the application', { cookie: `theme=dark; token=${key}` }],
  ]
  for (const [what, headers] of cases) {
    seen.length = 0
    assert.equal((await send(`${world.url}/public/x`, { 'x-kept': 'a', ...headers })).status, 200, what)
    const [name = ''] = Object.keys(headers)
    assert.equal(seen[0]?.['x-kept'], 'a')
    assert.equal(seen[0]?.[name], undefined, what)
  }

  // A text that only looks like the beginning of a key.
  const own = {
    authorization: `Bearer ${base64('{"alg":"none","jti":"ghk_1"}')}.ghk_2`,
    'x-other': 'a.ghk_',
    cookie: 'a=b',
  }
  await send(`${world.url}/public/x`, own)
  for (const [name, value] of Object.entries(own)) assert.equal(seen.at(-1)?.[name], value)
})

test('An application behind forward_auth gets no key in another field', async (t) => {
  const world = await startAskedWorld(t, { wikiRules: '- { path: /wiki/open/*, access: public }' })
  const key = `ghk_${'k'.repeat(64)}`
  const sent = { 'X-Api-Key': key, 'X-Other': `Bearer ${key}`, Cookie: `token=${key}`, 'X-Kept': 'a' }

  const open = await world.ask(world.described({ 'X-Forwarded-Uri': '/wiki/open/x', Accept: undefined, ...sent }))

  const removed = String(open.headers['x-envoy-auth-headers-to-remove']).split(', ')
  assert.deepEqual(
    Object.keys(sent).filter((name) => removed.includes(name.toLowerCase())),
    ['X-Api-Key', 'X-Other', 'Cookie'],
  )
})
