import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import * as undici from 'undici'
import { addressOf, Agent, Client, createProxyAgent, testedWith } from '../../src/wire/undici.ts'
import { bundledFiles } from '../support/bundle.ts'

test('The imported parts of undici are those of its main module', () => {
  assert.equal(Agent, undici.Agent)
  assert.equal(Client, undici.Client)
  const { version } = createRequire(import.meta.url)('undici/package.json') as { version: string }
  assert.match(version, testedWith, 'Run the tests with that version, then change testedWith.')
})

test('A proxy is reached with the client of the main module of undici', async () => {
  const agent = createProxyAgent({ uri: 'http://127.0.0.1:1' }, 1000)

  assert.ok(agent instanceof undici.ProxyAgent)
  await agent.close()
})

test('The program contains the clients of undici only', () => {
  const held = bundledFiles().filter((path) => path.startsWith('node_modules/undici/'))

  assert.ok(held.includes('node_modules/undici/lib/dispatcher/client.js'))
  assert.deepEqual(
    held.filter((path) => /undici\/index|fetch\/index|websocket|eventsource|mock|interceptor|cache/.test(path)),
    [],
  )
})

test('A URL is split into origin and path', () => {
  const origin = 'https://id.example.com:8443'
  assert.deepEqual(addressOf(`${origin}/token?a=b#c`), { origin, path: '/token?a=b' })
  assert.deepEqual(addressOf(new URL(origin)), { origin, path: '/' })
})
