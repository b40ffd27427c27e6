import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { RecordMemory, type HeldRecord } from '../../src/session/record/record-memory.ts'
import { searchFor } from '../support/searches.ts'

const mebibyte = 1024 * 1024

/** Bytes that differ for each number. */
function bytesOf(n: number, length: number): Buffer {
  return Buffer.alloc(length, createHash('sha256').update(String(n)).digest())
}

test('the bytes of a record never change while others are put and released', () => {
  const memory = new RecordMemory()
  const held = new Map<number, HeldRecord>()
  let [seed, heldBytes] = [1, 0]
  const random = (below: number) => (seed = (seed * 48_271) % 0x7fffffff) % below
  const count = searchFor(30_000, 6_000)
  for (let n = 0; n < count; n++) {
    const length = n % 500 === 0 ? random(3 * mebibyte) : 1 + random(6_000)
    held.set(n, memory.put(bytesOf(n, length)))
    heldBytes += length
    // First they become more, then fewer, in any order.
    for (let i = 0; i < (n < count / 3 ? 1 : 2); i++) {
      const victim = random(n + 1)
      heldBytes -= held.get(victim)?.length ?? 0
      held.get(victim)?.release()
      held.delete(victim)
    }
    if (n % (count / 10) === 0)
      for (const [number, { bytes }] of held) assert.ok(bytes.equals(bytesOf(number, bytes.length)))
    assert.ok(
      memory.totalBytes <= (heldBytes * 4) / 3 + 4 * mebibyte,
      `${memory.totalBytes} for ${heldBytes} after ${n}`,
    )
  }
  for (const [number, { bytes }] of held) assert.ok(bytes.equals(bytesOf(number, bytes.length)))
})

test('released memory never stays unused', () => {
  const memory = new RecordMemory()
  const held: HeldRecord[] = []
  const bytes = Buffer.alloc(2_000)
  for (let n = 0; n < 100_000; n++) {
    held[n % 10_000]?.release()
    held[n % 10_000] = memory.put(bytes)
  }
  assert.ok(memory.totalBytes <= 10_000 * 2_000 + 4 * mebibyte)
})

test('a record never loses its bytes before its last holder releases it', () => {
  const memory = new RecordMemory()
  const record = memory.put(bytesOf(1, 1_000))
  record.hold()
  record.release()
  assert.ok(record.bytes.equals(bytesOf(1, 1_000)))
  record.release()
  assert.equal(record.bytes.length, 0)
})
