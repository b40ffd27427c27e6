import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { KeptKey } from '../../src/core/names.ts'
import { memoryStore } from '../support/memory-store.ts'

function storeOf(t: TestContext) {
  const store = memoryStore({ maxSessions: 100, clock: { now: () => 0 } })
  t.after(() => store.close())
  return { kept: store.kept, size: () => store.size() }
}

test('A person who sends many kept forms takes no more memory than for a few of them', async (t) => {
  const { kept: store, size } = storeOf(t)
  const [max, ttl] = [8, 60_000]

  for (let form = 0; form < 100; form += 1) {
    const key = `person:form-${form}` as KeptKey
    assert.equal(await store.begin(key, max, ttl), 'begun')
    await store.complete(key, new Uint8Array(1), ttl)
    await store.take(key)
    await store.finish(key)
  }

  assert.ok(size() <= max + 1, `${size()} entries`)
  const last = await store.read('person:form-99' as KeptKey)
  assert.equal(last?.state, 'sent', 'the page still says that the last form was sent')
})

test('A person with the largest forms leaves room for the forms of others', async (t) => {
  const { kept: store } = storeOf(t)
  const [max, ttl, part] = [8, 60_000, new Uint8Array(1024 * 1024)]
  const keepForms = async (person: string, forms: number, parts: number): Promise<number> => {
    let kept = 0
    for (let form = 0; form < forms; form += 1) {
      const key = `${person}:form-${form}` as KeptKey
      await store.begin(key, max, ttl)
      let isKept = true
      for (let index = 0; index < parts && isKept; index += 1) isKept = await store.append(key, part, ttl)
      if (isKept && (await store.complete(key, new Uint8Array(1), ttl))) kept += 1
      else await store.drop(key)
    }
    return kept
  }

  assert.equal(await keepForms('jane', 8, 16), 1)
  assert.equal(await keepForms('samir', 8, 1), 8)
  assert.equal(await keepForms('amal', 1, 16), 1)
})
