import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionsWithin } from '../../src/limits/connection-limits.ts'
import type { Log } from '../../src/observe/log.ts'

for (const areConnectionsSet of [true, false])
  test(`Fewer open files lower limits.connections, and the log ${areConnectionsSet ? 'says so' : 'says nothing about a setting that the file does not have'}`, () => {
    const lines: string[] = []
    const write = (message: string) => lines.push(message)
    const log: Log = { debug: write, info: write, warn: write, error: write, announce: write }

    assert.equal(connectionsWithin({ connections: 10_000, areConnectionsSet }, log, 1024), 480)
    assert.equal(connectionsWithin({ connections: 100, areConnectionsSet }, log, 1024), 100)
    assert.deepEqual(lines, areConnectionsSet ? ['limits.connections_lowered'] : [])
  })
