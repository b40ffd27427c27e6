import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepForm, type ReceivedForm } from '../../src/kept-forms/receive.ts'
import { keptBounds } from '../../src/session/store/store.ts'
import { gatewayParts } from '../upgrade/formats.ts'

test('A form for which the store has no room is dropped at once, so that a smaller one is kept', async (t) => {
  const { kept, store } = gatewayParts()
  t.after(() => store.close())
  const form = {
    facts: { host: 'wiki.example.com', target: { path: '/', query: '' } },
    upstream: { name: 'wiki' },
  } as unknown as ReceivedForm
  const keep = (parts: readonly Buffer[]) =>
    keepForm(form, { rawHeaders: ['Content-Type', 'text/plain'], parts }, { kept, person: 'p'.repeat(24) as never })
  const part = Buffer.alloc(4 * 1024 * 1024)
  const tooMany = Math.ceil(keptBounds.personBytes / part.length)

  assert.equal(await keep(Array.from({ length: tooMany }, () => part)), 'full')

  assert.equal(typeof (await keep([part])), 'object')
})
