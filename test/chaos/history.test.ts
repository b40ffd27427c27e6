import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type HistoryEvent, now, readHistory, writeHistory } from '../../chaos/history.ts'

test('a history is read as it was written, also after its writer was killed in a line', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-history-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'history.jsonl')
  const begin = now()
  const events: HistoryEvent[] = [
    { type: 'fault', id: 'f1', kind: 'kill', part: 'replica', replicas: ['a'], begin, end: now() },
    { type: 'end', at: now() },
  ]

  const history = writeHistory(path)
  for (const event of events) history.record(event)
  await history.close()
  appendFileSync(path, '{"type":"fau')

  assert.deepEqual(readHistory(path), events)
})
