import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs, {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { KeptKey, SessionKey } from '../../src/core/names.ts'
import { sidTag, subTag } from '../../src/session/record/record.ts'
import { SqliteStore } from '../../src/session/store/sqlite/sqlite-store.ts'
import { buildModule } from '../support/bundle.ts'
import { startCommand } from '../support/command.ts'
import { replacePauses } from '../support/pauses.ts'
import { isLongSearch } from '../support/searches.ts'
import { smallDisk } from '../support/small-disk.ts'
import { until } from '../support/until.ts'
import { created, keysOf, newSession, order, storeContract, times } from './store-contract.ts'

/** A folder of its own for a test. */
function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-file-store-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

/** Opens a store with a clock of its own, and records the messages of its log. */
function open(t: TestContext, file: string) {
  let now = Date.UTC(2026, 0, 1)
  const clock = { now: () => now }
  const messages: string[] = []
  const note = (message: string) => void messages.push(message)
  const store = new SqliteStore({ file, clock, log: { debug() {}, info() {}, warn: note, error: note, announce() {} } })
  let isClosed = false
  const close = async () => {
    if (!isClosed) await store.close()
    isClosed = true
  }
  t.after(close)
  const tick = () => {
    now += 10
    // The store deletes what has expired once a second: a turn of the event loop is too short.
    return new Promise<void>((resolve) => setTimeout(resolve, 1))
  }
  return { store, now: clock.now, tick, close, messages, pass: (ms: number) => void (now += ms) }
}

storeContract('file', async (t) => {
  const { store, now, tick } = open(t, join(folderFor(t), 'sessions.db'))
  return { store, now, tick, size: async () => store.size() }
})

test('A file keeps sessions, tombstones, jtis, marks, documents, jobs and forms over a restart', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const first = open(t, file)
  const { key, sealed } = await created(first.store, first.now())
  const token = order(first.now())
  await first.store.endSid(sidTag('https://id.example.com/', 'one'), token)
  await first.store.takeOnce('a thing', 60_000)
  await first.store.writeDocument('keys', { sealed: Buffer.from('keys'), version: 0 }, 60_000)
  await first.store.replace(key, sealed, 1, Buffer.from('job'))
  await first.store.jobs.watch('audience', key, 0, 60_000)
  await first.close()

  const { store, now } = open(t, file)

  const read = await store.read(key)
  assert.deepEqual([Buffer.from(read?.sealed ?? []), read?.version], [Buffer.from(sealed), 2])
  assert.equal(read?.isDoubtful, undefined)
  assert.equal(await store.endSid(sidTag('https://id.example.com/', 'one'), token), 'replayed')
  const late = newSession(now(), { sid: 'one', begun_at: token.at })
  assert.equal(await store.create(late), 'ended')
  assert.equal(await store.takeOnce('a thing', 60_000), false)
  assert.equal(Buffer.from((await store.readDocument('keys'))?.sealed ?? []).toString(), 'keys')
  const jobs = await store.jobs.take('audience', { ended: [], limit: 10, lease: 1_000 })
  assert.deepEqual(
    jobs.map((job) => job.key),
    [key],
  )
})

test('What must survive a power failure is on the disk when the method returns: endings first', async (t) => {
  const { store, now } = open(t, join(folderFor(t), 'sessions.db'))
  const keys: SessionKey[] = []
  for (const sid of ['one', 'two', 'three', 'four']) keys.push((await created(store, now(), { sid })).key)
  const [first, , , last] = keys as [SessionKey, SessionKey, SessionKey, SessionKey]
  // FULL syncs the WAL at each commit (https://sqlite.org/pragma.html#pragma_synchronous).
  const full = 2
  let modes: unknown[] = []
  const exec = DatabaseSync.prototype.exec
  t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    if (sql === 'COMMIT') modes.push(this.prepare('PRAGMA synchronous').get()?.['synchronous'])
    exec.call(this, sql)
  })
  const issuer = 'https://id.example.com/'
  const kept = 'person:form' as KeptKey

  for (const [what, write] of Object.entries({
    create: () => store.create(newSession(now())),
    replace: () => store.replace(last, Buffer.from('new'), 1),
    endOne: () => store.endOne(first),
    endSid: () => store.endSid(sidTag(issuer, 'two'), order(now())),
    endSub: () => store.endSub(subTag(issuer, 'jane'), order(now())),
    takeOnce: () => store.takeOnce('a thing', 60_000),
    writeDocument: () => store.writeDocument('keys', { sealed: Buffer.from('keys'), version: 0 }, 60_000),
    'jobs.watch': () => store.jobs.watch('audience', last, 0, 60_000),
    'jobs.postpone': () => store.jobs.postpone('audience', last, 1_000, Buffer.from('job')),
    'jobs.remove': () => store.jobs.remove('audience', last),
    'kept.complete': async () => {
      await store.kept.begin(kept, 1, 60_000)
      modes = []
      return store.kept.complete(kept, Buffer.from('head'), 60_000)
    },
    'kept.take': () => store.kept.take(kept),
    'kept.giveBack': () => store.kept.giveBack(kept),
    'kept.finish': async () => {
      await store.kept.take(kept)
      await store.touch(last, 60_000)
      modes = []
      return store.kept.finish(kept)
    },
    'kept.drop': () => store.kept.drop(kept),
  })) {
    // The mode stays until a write needs the other one.
    await store.touch(last, 60_000)
    modes = []
    await write()
    assert.deepEqual(modes, [full], what)
  }
})

test('A lease of a process that died does not delay the next one', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const first = open(t, file)
  const { key } = await created(first.store, first.now())
  assert.equal(await first.store.acquireLease(key, 'dead', 600_000), true)
  await first.close()

  assert.equal(await open(t, file).store.acquireLease(key, 'alive', 600_000), true)
})

test('A process that is killed at any write loses nothing that it has acknowledged', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const writerFile = fileURLToPath(buildModule('test/session/file-writer.ts'))
  for (const acknowledged of isLongSearch ? [1, 2, 3, 5, 40, 41] : [1, 2, 41]) {
    const writer = startCommand(t, [file], { program: [process.execPath, writerFile] })
    await new Promise<void>((resolve) => {
      writer.child.stdout?.on('data', () => {
        if (writer.out().split('\n').length > acknowledged) resolve()
      })
    })
    writer.child.kill('SIGKILL')
    await writer.ended

    const store = new SqliteStore({ file, clock: { now: Date.now }, log: silent })
    const keysSaid = (what: string) =>
      writer
        .out()
        .split('\n')
        // Without the last line, which may be cut off.
        .slice(0, -1)
        .filter((line) => line.startsWith(what))
        .map((line) => line.slice(what.length + 1) as SessionKey)
    const ended = keysSaid('ended')
    for (const key of ended) assert.equal(await store.read(key), undefined)
    // The writer may have ended the last one without saying so.
    for (const key of keysSaid('created').slice(0, -1))
      if (!ended.includes(key)) {
        const read = await store.read(key)
        assert.equal(read?.version, 2)
        assert.equal(read.isDoubtful, undefined)
      }
    await store.close()
  }
})

test('A second gateway does not open the file, and says that another process has it open', async (t) => {
  replacePauses(t, { lockSessionFileMs: 100 })
  const file = join(folderFor(t), 'sessions.db')
  const { store, now, close } = open(t, file)
  const { key } = await created(store, now())

  assert.throws(() => open(t, file), {
    name: 'OperatorError',
    message: /session\.store\.file: cannot use .*sessions\.db: another process has it open: .*or use Redis$/,
  })
  assert.notEqual(await store.read(key), undefined)
  await close()

  assert.notEqual(await open(t, file).store.read(key), undefined)
})

test('Sessions in an older copy of the file are doubtful, because their endings may be missing', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const first = open(t, file)
  const [kept, ended] = [await created(first.store, first.now()), await created(first.store, first.now())]
  await first.close()
  copyFileSync(file, `${file}.backup`)
  const second = open(t, file)
  await second.store.endOne(ended.key)
  await second.close()
  assert.deepEqual(second.messages, [])
  copyFileSync(`${file}.backup`, file)

  const third = open(t, file)

  assert.deepEqual(third.messages, ['store.older_copy'])
  for (const { key } of [kept, ended]) assert.equal((await third.store.read(key))?.isDoubtful, true)
  // A write that says nothing about what the provider thinks of the session.
  await third.store.replace(kept.key, kept.sealed, 1, undefined, false, true)
  assert.equal((await third.store.read(kept.key))?.isDoubtful, true)
  // The provider has confirmed one of them.
  await third.store.replace(kept.key, kept.sealed, 2)
  assert.equal((await third.store.read(kept.key))?.isDoubtful, undefined)
  const fresh = await created(third.store, third.now())
  await third.close()
  const fourth = open(t, file)
  assert.deepEqual(fourth.messages, [])
  assert.equal((await fourth.store.read(ended.key))?.isDoubtful, true)
  for (const { key } of [kept, fresh]) assert.equal((await fourth.store.read(key))?.isDoubtful, undefined)
})

test('A new file between an ending and an older copy does not hide that the ending is missing', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const first = open(t, file)
  const { key } = await created(first.store, first.now())
  await first.close()
  copyFileSync(file, `${file}.backup`)
  const second = open(t, file)
  await second.store.endOne(key)
  await second.close()
  rmSync(file)
  const fresh = open(t, file)
  assert.deepEqual(fresh.messages, [])
  await fresh.close()
  copyFileSync(`${file}.backup`, file)

  const { store, messages } = open(t, file)

  assert.deepEqual(messages, ['store.older_copy'])
  assert.equal((await store.read(key))?.isDoubtful, true)
})

test('The WAL of a killed process never makes an older copy look up to date', async (t) => {
  const folder = folderFor(t)
  const [file, killed] = [join(folder, 'sessions.db'), join(folder, 'killed.db')]
  const first = open(t, file)
  const keys = await Promise.all(times(300, async () => (await created(first.store, first.now())).key))
  const [ended, last] = [keys[100] as SessionKey, keys[290] as SessionKey]
  await first.close()
  copyFileSync(file, `${file}.backup`)
  const second = open(t, file)
  await second.store.endOne(ended)
  await second.close()
  const third = open(t, file)
  await third.store.endOne(last)
  // What SIGKILL leaves.
  for (const suffix of ['', '-wal', '-endings']) copyFileSync(file + suffix, killed + suffix)
  const untouched = readFileSync(`${file}.backup`)
  copyFileSync(`${file}.backup`, killed)

  assert.throws(() => open(t, killed), { message: /it is older than .*killed\.db-wal, which would damage it: delete/ })
  assert.deepEqual(readFileSync(killed), untouched)

  rmSync(`${killed}-wal`)
  const { store, messages } = open(t, killed)
  assert.deepEqual(messages, ['store.older_copy'])
  assert.equal((await store.read(ended))?.isDoubtful, true)
})

test('An ending that was carried out never fails because its number cannot be written', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const { store, now, close } = open(t, file)
  const [one, two] = [await created(store, now()), await created(store, now())]
  await store.endOne(one.key)
  const written = readFileSync(`${file}-endings`, 'latin1')
  const failing = t.mock.method(fs, 'writeSync', () => {
    throw new Error('EIO')
  })
  syncBuiltinESMExports()

  const ended = await store.endOne(two.key).finally(() => {
    failing.mock.restore()
    syncBuiltinESMExports()
  })

  assert.deepEqual(
    ended.map(({ key }) => key),
    [two.key],
  )
  assert.equal(readFileSync(`${file}-endings`, 'latin1'), written)
  await until('the number is written', () => readFileSync(`${file}-endings`, 'latin1') !== written)
  await close()
})

test('Many sessions that expire at once do not stop the process', async (t) => {
  const { store, now, pass } = open(t, join(folderFor(t), 'sessions.db'))
  await Promise.all(times(600, () => created(store, now())))
  pass(1_000_000_000)

  await until('a part of them is deleted', () => store.size() < 600)

  assert.equal(store.size(), 100)
  await until('all of them are deleted', () => store.size() === 0)
})

test('The file of the WAL does not grow with each write', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const { store, now } = open(t, file)
  const { key } = await created(store, now())
  const walBytes = () => statSync(`${file}-wal`).size
  for (let version = 1; version < 250; version += 1) await store.replace(key, Buffer.alloc(30_000, version), version)

  const before = walBytes()
  for (let version = 250; version < 650; version += 1) await store.replace(key, Buffer.alloc(30_000, version), version)

  assert.ok(walBytes() <= before, `${walBytes()} bytes`)
})

test('Sessions in a file without the number of its endings are doubtful', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const first = open(t, file)
  const { key } = await created(first.store, first.now())
  await first.close()

  for (const breakIt of [() => rmSync(`${file}-endings`), () => writeFileSync(`${file}-endings`, 'garbage')]) {
    breakIt()
    const { store, close, messages } = open(t, file)
    assert.equal((await store.read(key))?.isDoubtful, true)
    assert.deepEqual(messages, ['store.older_copy'])
    await close()
  }
})

test('A file in the format of a newer version stays as it is, and without it the store is empty', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const first = open(t, file)
  const { key } = await created(first.store, first.now())
  await first.close()
  const database = new DatabaseSync(file)
  database.exec('PRAGMA user_version = 2')
  database.close()
  const before = readFileSync(file)

  assert.throws(() => open(t, file), { message: /it has the format 2 of a newer version of Gatehouse/ })

  // The journal mode is in the header.
  const content = (bytes: Buffer) => bytes.subarray(100)
  assert.deepEqual(content(readFileSync(file)), content(before))

  renameSync(file, `${file}.away`)
  assert.equal(await open(t, file).store.read(key), undefined)
})

test('A repeated order ends the sessions of a file from before 0.2.0, which does not say when they began', async (t) => {
  const file = join(folderFor(t), 'sessions.db')
  const first = open(t, file)
  const { key } = await created(first.store, first.now(), { sid: 'one', begun_at: first.now() + 60_000 })
  await first.close()
  const database = new DatabaseSync(file)
  database.exec('ALTER TABLE sessions DROP COLUMN begun_at')
  database.close()

  const { store, now } = open(t, file)
  const later = await created(store, now(), { sid: 'one', begun_at: now() + 60_000 })

  const tag = sidTag('https://id.example.com/', 'one')
  assert.deepEqual(keysOf(await store.endSid(tag, order(now(), { begun_until: now() }))), [key])
  assert.notEqual(await store.read(later.key), undefined)
})

test('A file that cannot be used is named, with what to do', (t) => {
  const folder = folderFor(t)
  const file = join(folder, 'sessions.db')
  const message = () => {
    try {
      open(t, file)
    } catch (error) {
      return (error as Error).message
    }
    return assert.fail('it was opened')
  }
  writeFileSync(file, 'this is a text, and no database at all\n'.repeat(100))
  assert.match(message(), /the file is not a database: name another one/)
  rmSync(file)
  mkdirSync(file)
  assert.match(message(), /EISDIR|cannot be written/)
  rmSync(file, { recursive: true })
  // A FIFO would stop the process for ever.
  execFileSync('mkfifo', [file])
  assert.match(message(), /it is not a regular file/)
  rmSync(file)
  assert.throws(() => open(t, join(folder, 'nowhere', 'sessions.db')), {
    message: /session\.store\.file: cannot use .*nowhere.*: its folder does not exist: create it/,
  })
})

test('Only the user of the gateway can read the file', (t) => {
  const file = join(folderFor(t), 'sessions.db')
  open(t, file)
  for (const name of [file, `${file}-endings`, `${file}-wal`]) assert.equal(statSync(name).mode & 0o077, 0, name)
})

test('A link in place of the second file does not overwrite another file', (t) => {
  const folder = folderFor(t)
  const [file, other] = [join(folder, 'sessions.db'), join(folder, 'other')]
  writeFileSync(other, 'a text of somebody')
  symlinkSync(other, `${file}-endings`)

  assert.throws(() => open(t, file), { name: 'OperatorError', message: /sessions\.db-endings: ELOOP/ })

  assert.equal(readFileSync(other, 'utf8'), 'a text of somebody')
})

test('On a full disk nothing is half written, and all works again when there is space', async (t) => {
  const disk = smallDisk(t)
  if (disk === undefined) return t.skip('only root can mount a small disk')
  const { store, now } = open(t, join(disk.folder, 'sessions.db'))
  const { key } = await created(store, now(), { sid: 'one' })
  disk.fill()
  const big = Buffer.alloc(100_000)

  await assert.rejects(store.replace(key, big, 1), { code: 'ERR_STORE_UNAVAILABLE', message: /full/ })
  await assert.rejects(store.create(newSession(now(), { sealed: big })), { code: 'ERR_STORE_UNAVAILABLE' })
  assert.equal((await store.read(key))?.version, 1)

  disk.free()
  assert.equal(await store.replace(key, big, 1), 'replaced')
  assert.equal((await store.endOne(key)).length, 1)
})

test('On a disk that has become read-only, endings are refused rather than forgotten', async (t) => {
  const disk = smallDisk(t)
  if (disk === undefined) return t.skip('only root can mount a small disk')
  const file = join(disk.folder, 'sessions.db')
  const first = open(t, file)
  const { key } = await created(first.store, first.now())
  await first.close()
  disk.remount('ro')

  assert.throws(() => open(t, file), { message: /read-only/i })

  disk.remount('rw')
  assert.equal((await open(t, file).store.endOne(key)).length, 1)
})

test('The list of the file has each session once, the latest first', async (t) => {
  const { store, now } = open(t, join(folderFor(t), 'sessions.db'))
  const sessions = await Promise.all(times(1_100, () => created(store, now())))

  const listed: SessionKey[] = []
  for await (const keys of store.list()) listed.push(...keys)

  assert.deepEqual(listed, sessions.map(({ key }) => key).toReversed())
})

const silent = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
