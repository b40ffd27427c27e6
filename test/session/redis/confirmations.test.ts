import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  confirmationIn,
  confirmationMessage,
  Confirmations,
  NoticeMessages,
  parseMessage,
} from '../../../src/session/store/redis/confirmations.ts'

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, announce: () => {} }

/** Sends a notice to processes, of which some confirm at once. */
async function notified(confirmations: Confirmations, told: number, names: readonly (string | undefined)[]) {
  let id = ''
  const { confirmed } = await confirmations.collect(async (given) => {
    id = given
    return told
  })
  for (const name of names) confirmations.confirm(id, name)
  return { id, reach: await confirmed }
}

test('Each confirmation has the name of its process and the time until it arrived', async () => {
  const confirmations = new Confirmations(log)

  const { reach } = await notified(confirmations, 3, ['a/1', undefined, 'x'.repeat(5_000)])

  assert.deepEqual(
    reach.confirmed.map(({ process }) => process),
    ['a/1', 'unnamed process 2', 'x'.repeat(100)],
  )
  assert.ok(reach.confirmed.every(({ ms }) => ms >= 0 && ms < 250))
  assert.deepEqual([reach.missing, reach.absent], [0, []])
})

test('A process that does not confirm is counted, named if it confirmed before, and its late confirmation counts', async () => {
  const confirmations = new Confirmations(log)
  await notified(confirmations, 2, ['a/1', 'b/2'])

  const { id, reach } = await notified(confirmations, 2, ['a/1'])
  assert.deepEqual([reach.missing, reach.absent], [1, ['b/2']])
  confirmations.confirm(id, 'b/2')

  assert.deepEqual([reach.missing, reach.absent], [0, []])
  assert.ok((reach.confirmed.at(-1)?.ms ?? 0) >= 249)
  // It is not waited for again, and nothing is counted twice.
  confirmations.confirm(id, 'b/2')
  assert.equal(reach.confirmed.length, 2)
})

test('A process is not named when the missing one may be another', async () => {
  const confirmations = new Confirmations(log)
  await notified(confirmations, 3, ['a/1', 'b/2', 'c/3'])

  const { reach } = await notified(confirmations, 2, ['a/1'])

  assert.deepEqual([reach.missing, reach.absent], [1, []])
})

test('A confirmation has a name only for a sender that asks for it, because an earlier version expects the id alone', () => {
  const asks = parseMessage(new NoticeMessages('me').ended([], 'id1'))
  const earlier = parseMessage('{"from":"me","kind":"ended","id":"id1","keys":[]}')

  assert.deepEqual([asks?.wantsName, earlier?.wantsName], [true, false])
  assert.deepEqual(confirmationIn(confirmationMessage('id1', undefined)), ['id1'])
  assert.deepEqual(confirmationIn(confirmationMessage('id1', 'pod 1/7 (x)')), ['id1', 'pod 1/7 (x)'])
})
