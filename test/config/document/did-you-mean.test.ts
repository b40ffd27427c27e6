import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean } from '../../../src/config/document/did-you-mean.ts'

const known = ['external_url', 'idle_timeout', 'listen', 'log', 'provider', 'url', 'hosts']

for (const [written, meant] of [
  ['externalUrl', 'external_url'],
  ['external-url', 'external_url'],
  ['idle_timout', 'idle_timeout'],
  ['lisetn', 'listen'],
  ['provider', 'provider'],
  ['providers', 'provider'],
  ['host', 'hosts'],
  ['urls', 'url'],
  ['foo', undefined],
  ['timeout', undefined],
  ['', undefined],
  ['x'.repeat(100_000), undefined],
] as const) {
  test(`${written.slice(0, 20)} was meant to be ${meant}`, () => assert.equal(didYouMean(written, known), meant))
}
