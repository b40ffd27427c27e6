import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

test('Where no upstream serves "/", the links to the start page lead to the path of an upstream', async (t) => {
  const world = await startWorld(t, { upstreamSettings: 'path: /echo/' })
  const jane = world.browser()
  const foreign = { 'sec-fetch-site': 'cross-site' }

  const missing = await jane.get(`${world.url}/`)
  const question = await jane.get(`${world.url}/.gatehouse/sign-out`, { headers: foreign })
  const signedOut = await jane.get(`${world.url}/.gatehouse/signed-out`)

  assert.equal(missing.status, 404)
  for (const { body } of [missing, question]) {
    assert.ok(body.includes('href="/echo/"'), body)
    assert.ok(!body.includes('href="/"'), body)
  }
  assert.ok(signedOut.body.includes('href="/.gatehouse/sign-in?return_to=%2Fecho%2F"'), signedOut.body)
})
