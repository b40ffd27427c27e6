// Own process: it uses no private part of Node.js from then on.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaveOutPrivateParts } from '../../../src/core/node-private-parts.ts'
import { startHttp2World } from '../../support/http2.ts'

test('A gateway without private parts of Node.js serves no h2c, and says why', async (t) => {
  leaveOutPrivateParts('the trial failed')

  await assert.rejects(
    startHttp2World(t, () => {}, { h2c: true }),
    { message: 'listen.h2c needs private parts of Node.js: the trial failed' },
  )
})
