import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import * as undici from 'undici'
import { addressOf, Agent, Client, testedWith } from '../../src/core/undici.ts'
import { root } from '../support/command.ts'

test('The imported parts of undici are those of its main module', () => {
  assert.equal(Agent, undici.Agent)
  assert.equal(Client, undici.Client)
  const { version } = createRequire(import.meta.url)('undici/package.json') as { version: string }
  assert.match(version, testedWith, 'Run the tests with that version, then change testedWith.')
})

test('The unused parts of undici are not loaded', () => {
  const program = `
    await import('./dist/cli/run.js')
    const { Module } = await import('node:module')
    const loaded = Object.keys(Module._cache).filter((path) => path.includes('/undici/'))
    console.log(loaded.length, loaded.filter((path) => /fetch|websocket|mock|interceptor/.test(path)).length)`
  const args = ['--input-type=module', '--eval', program]
  const output = execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
  const [all = 0, needless] = output.trim().split(' ').map(Number)
  assert.ok(all > 5)
  assert.equal(needless, 0)
})

test('A URL is split into origin and path', () => {
  const origin = 'https://id.example.com:8443'
  assert.deepEqual(addressOf(`${origin}/token?a=b#c`), { origin, path: '/token?a=b' })
  assert.deepEqual(addressOf(new URL(origin)), { origin, path: '/' })
})
