// A process that writes to a file store as fast as it can, and says what the store has
// acknowledged: `created KEY` and `ended KEY`, a line each. A test kills it.
import { writeSync } from 'node:fs'
import { SqliteStore } from '../../src/session/store/sqlite/sqlite-store.ts'
import { newSession } from './store-contract.ts'

const log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
const store = new SqliteStore({ file: process.argv[2] ?? '', clock: { now: Date.now }, log })
for (let count = 0; ; count += 1) {
  const session = newSession(Date.now(), { sealed: Buffer.alloc(700, count) })
  await store.create(session)
  writeSync(1, `created ${session.key}\n`)
  await store.replace(session.key, Buffer.alloc(900, count), 1)
  if (count % 2 === 0) continue
  await store.endOne(session.key)
  writeSync(1, `ended ${session.key}\n`)
}
