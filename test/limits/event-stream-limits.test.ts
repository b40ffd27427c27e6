import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LimitsConfig } from '../../src/config/model/gateway.ts'
import { TooManyRequests, EventStreamLimits } from '../../src/limits/endpoint-limits.ts'
import { RejectedClients } from '../../src/limits/rejected-clients.ts'
import { recorder } from '../session/redis-stores.ts'

function open(connections: number, perClient: number) {
  const log = recorder()
  const limits = { connections, perClient: { connections: perClient } } as LimitsConfig
  const streams = new EventStreamLimits(limits, new RejectedClients(log, { now: () => 0 }))
  return { streams, noted: () => log.lines.map(({ fields }) => fields?.['limit']) }
}

test('A session has at most 16 streams, and one that ends makes room', () => {
  const { streams, noted } = open(1000, 1000)
  const [end = assert.fail()] = Array.from({ length: 16 }, () => streams.begin('jane', 'a'))

  assert.throws(() => streams.begin('jane', 'b'), TooManyRequests)
  streams.begin('samir', 'a')
  end()
  streams.begin('jane', 'b')
  assert.deepEqual(noted(), [])
})

test('A client with many sessions has no more streams than connections', () => {
  const { streams, noted } = open(1000, 3)
  const [end = assert.fail()] = ['s1', 's2', 's3'].map((session) => streams.begin(session, 'a'))

  assert.throws(() => streams.begin('s4', 'a'), TooManyRequests)
  streams.begin('s4', 'b')
  end()
  streams.begin('s5', 'a')
  assert.deepEqual(noted(), ['limits.per_client.connections'])
})

test('All streams together leave a quarter of the connections to requests', () => {
  const { streams, noted } = open(8, 100)
  const [end = assert.fail()] = [1, 2, 3, 4, 5, 6].map((each) => streams.begin(`s${each}`, `c${each}`))

  assert.throws(() => streams.begin('s7', 'c7'), TooManyRequests)
  end()
  streams.begin('s7', 'c7')
  assert.deepEqual(noted(), ['limits.connections'])
})

test('A refused stream does not count', () => {
  const { streams } = open(1000, 1)
  streams.begin('s1', 'a')
  for (let each = 0; each < 20; each += 1) assert.throws(() => streams.begin('jane', 'a'), TooManyRequests)

  streams.begin('jane', 'b')
})
