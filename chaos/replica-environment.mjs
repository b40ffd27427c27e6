// Loaded by a replica before the gateway (`node --import`): the replica connects from an address of
// its own, each worker from one next to it and with a log of its own. Its clock is off by what a
// file says, and SIGUSR2 collects garbage.
import cluster from 'node:cluster'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'

const { CHAOS_ADDRESS: address = '', CHAOS_CLOCK: file = '' } = process.env
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
