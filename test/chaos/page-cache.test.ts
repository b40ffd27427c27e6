import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { losePageCache } from '../../chaos/page-cache.ts'
import { root } from '../support/command.ts'

const environment = join(root, 'chaos', 'replica-environment.mjs')

/** What a process writes as the gateway does, until it is killed. */
const program = `
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const { writeFileSync } = process.getBuiltinModule('node:fs')
  const file = process.env.CHAOS_SESSIONS
  writeFileSync(file + '-endings', 'before')
  const database = new DatabaseSync(file)
  database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0')
  const write = (mode, sql) => {
    database.exec('PRAGMA synchronous = ' + mode)
    database.exec('BEGIN IMMEDIATE')
    database.exec(sql)
    database.exec('COMMIT')
  }
  const insert = (name) => "INSERT INTO names VALUES ('" + name + "')"
  write('FULL', 'CREATE TABLE names (name TEXT)')
  for (const [mode, name] of JSON.parse(process.env.WRITES))
    if (mode === 'checkpoint') database.prepare('PRAGMA wal_checkpoint(RESTART)').get()
    else write(mode, insert(name))
  writeFileSync(file + '-endings', 'after')
  process.kill(process.pid, 'SIGKILL')
`

for (const [what, writes, expected] of [
  [
    'keeps what was synced, and loses what was not',
    [
      ['FULL', 'a'],
      ['NORMAL', 'b'],
    ],
    ['a'],
  ],
  [
    'keeps an ordinary write before a durable one',
    [
      ['NORMAL', 'a'],
      ['FULL', 'b'],
      ['NORMAL', 'c'],
    ],
    ['a', 'b'],
  ],
  ['keeps what a checkpoint has copied', [['NORMAL', 'a'], ['checkpoint'], ['NORMAL', 'b']], ['a']],
  [
    'keeps what was synced after a checkpoint',
    [['FULL', 'a'], ['checkpoint'], ['FULL', 'b'], ['NORMAL', 'c']],
    ['a', 'b'],
  ],
] as const)
  test(`A loss of power ${what}`, (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-power-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'sessions.db')
    writeFileSync(join(folder, 'clock'), '0')
    const env = { CHAOS_ADDRESS: '127.0.0.1', CHAOS_CLOCK: join(folder, 'clock'), CHAOS_SESSIONS: file }
    const { signal, stderr } = spawnSync(process.execPath, ['--import', environment, '--eval', program], {
      env: { ...process.env, ...env, WRITES: JSON.stringify(writes) },
      encoding: 'utf8',
    })
    assert.equal(signal, 'SIGKILL', stderr)
    losePageCache(file)

    const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
    const database = new DatabaseSync(file)
    const names = database.prepare('SELECT name FROM names').all()
    database.close()
    assert.deepEqual(
      names.map(({ name }) => name),
      expected,
    )
    assert.equal(readFileSync(`${file}-endings`, 'utf8'), 'before')
  })
