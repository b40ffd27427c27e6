import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorCodes, errorRow } from '../../src/core/error-codes.ts'
import { grpcFields, grpcStatusFor, grpcTimeoutMs } from '../../src/core/grpc.ts'

test('grpc-timeout is read in all of its units, and ignored when it is malformed', () => {
  const timeouts = [
    '2H',
    '3M',
    '5S',
    '50m',
    '1000u',
    '1000000n',
    '0S',
    '123456789S',
    '1',
    'S',
    '-1S',
    '1s',
    '',
    undefined,
  ]

  assert.deepEqual(timeouts.map(grpcTimeoutMs), [
    7_200_000,
    180_000,
    5_000,
    50,
    1,
    1,
    1,
    ...Array.from({ length: 7 }, () => Infinity),
  ])
})

test('Each refusal of the gateway has a status of gRPC other than OK', () => {
  for (const code of errorCodes) assert.ok(grpcStatusFor(errorRow(code).status) > 0)
})

test('grpc-message has no characters outside ASCII, and no control characters', () => {
  assert.deepEqual(grpcFields(16, 'müde\r\n100%'), { 'grpc-status': '16', 'grpc-message': 'm%C3%BCde%0D%0A100%25' })
})
