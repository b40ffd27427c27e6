// Loaded by a replica before the gateway (`node --import`): the replica connects from an address of
// its own, each worker from one next to it and with a log of its own. Its clock is off by what a
// file says, and SIGUSR2 collects garbage. With a file of sessions, it notes what SQLite has
// synced.
import cluster from 'node:cluster'
import { closeSync, copyFileSync, openSync, readFileSync, readSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'

const { CHAOS_ADDRESS: address = '', CHAOS_CLOCK: file = '', CHAOS_SESSIONS: sessions } = process.env
const worker = cluster.worker?.id
const localAddress = address.replace(/\d+$/, String(1 + ((worker ?? 0) % 250)))
const connect = net.connect
net.connect = net.createConnection = (options, ...rest) =>
  connect(
    typeof options === 'object' ? { ...options, localAddress: options.localAddress ?? localAddress } : options,
    ...rest,
  )
syncBuiltinESMExports()

if (worker !== undefined) {
  // The next file gets the lowest free number, which is that of standard output.
  closeSync(1)
  openSync(file.replace(/clock$/, `${worker}.log`), 'a')
}

const RealDate = Date
let offset = 0
const read = () => (offset = Number(readFileSync(file, 'utf8')) || 0)
read()
setInterval(read, 200).unref()
globalThis.Date = class Date extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + offset)
    else super(...given)
  }
  static now() {
    return RealDate.now() + offset
  }
}

if (sessions !== undefined) watchSyncs(sessions)

process.on('SIGUSR2', () => void collectGarbage())

async function collectGarbage() {
  // The second collection frees what the first one has finalized.
  for (let times = 0; times < 2; times += 1) {
    globalThis.gc()
    await pause(50)
  }
  const { heapUsed, external } = process.memoryUsage()
  writeFileSync(`${file}.${process.pid}`, String(heapUsed + external))
}

/**
 * SQLite syncs the WAL at a COMMIT with synchronous=FULL, and before a checkpoint
 * (https://sqlite.org/pragma.html#pragma_synchronous). Notes up to where, before the gateway goes
 * on: with `losePageCache` of page-cache.ts, everything after that is lost.
 */
function watchSyncs(file) {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const { exec, prepare } = DatabaseSync.prototype
  const header = Buffer.alloc(32)
  const frame = Buffer.alloc(24)
  let wal, note
  let [salts, end] = ['', 0]
  const noteSync = () => {
    if (note === undefined) {
      if (statSync(`${file}-endings`).size > 0) copyFileSync(`${file}-endings`, `${file}.synced-endings`)
      note = openSync(`${file}.synced`, 'w')
    }
    wal ??= openSync(`${file}-wal`, 'r')
    if (readSync(wal, header, 0, header.length, 0) < header.length) return
    const current = header.toString('hex', 16, 24)
    if (current !== salts) [salts, end] = [current, header.length]
    while (readSync(wal, frame, 0, frame.length, end) === frame.length && frame.toString('hex', 8, 16) === salts)
      end += frame.length + header.readUInt32BE(8)
    writeSync(note, `${salts} ${String(end).padStart(16)}`, 0)
  }
  DatabaseSync.prototype.exec = function (sql) {
    exec.call(this, sql)
    if (sql === 'COMMIT' && prepare.call(this, 'PRAGMA synchronous').get().synchronous === 2) noteSync()
  }
  DatabaseSync.prototype.prepare = function (sql) {
    const statement = prepare.call(this, sql)
    if (!sql.includes('wal_checkpoint')) return statement
    const get = statement.get.bind(statement)
    return { get: (...values) => (noteSync(), get(...values)) }
  }
}
