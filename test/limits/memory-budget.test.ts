import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { freeMemory, workersWithin } from '../../src/config/memory.ts'
import { budgetBytes, MemoryBudget } from '../../src/limits/memory-budget.ts'

const mebibyte = 1024 * 1024

class Connection extends Duplex {
  readonly bytesWritten = 0
  readonly remoteAddress: string

  constructor(remoteAddress: string) {
    super()
    this.remoteAddress = remoteAddress
  }

  override _read(): void {}
}

/** A budget of 1000 bytes, and the names of the connections that it has closed. */
function startBudget() {
  const closed: string[] = []
  const budget = new MemoryBudget(1000, { rejectedClients: { note: () => {} } })
  const open = (name: string, address: string, bytes: number, party?: string) => {
    const socket = new Connection(address)
    const close = () => {
      closed.push(name)
      socket.destroy()
      budget.unwatch(socket)
    }
    budget.watch(socket, 0, { heldBytes: () => bytes, close })
    if (party !== undefined) budget.admits(socket, address, party)
    return socket
  }
  return { budget, open, closed }
}

test('A client that reads over TLS stays, although its response is in memory twice', () => {
  const { budget, closed } = startBudget()
  const socket = Object.assign(new Connection('192.0.2.1'), { encrypted: true, bytesWritten: 5000 })
  Object.defineProperty(socket, 'writableLength', { value: 480 })
  budget.watch(socket, 100, { heldBytes: () => 0, close: () => void closed.push('reading') })
  budget.check()
  assert.deepEqual(closed, [])
})

test('Nothing is closed within the budget', () => {
  const { budget, open, closed } = startBudget()
  for (let count = 0; count < 10; count += 1) open(`${count}`, '192.0.2.1', 100)
  budget.check()
  assert.deepEqual(closed, [])
})

test('A network that holds most pays, whatever the number of its addresses, and there the address that holds most', () => {
  const { budget, open, closed } = startBudget()
  open('small', '198.51.100.1', 200)
  for (let host = 1; host <= 6; host += 1) open(`of the network ${host}`, `192.0.2.${host}`, host === 3 ? 150 : 140)
  open('another', '203.0.113.1', 190)
  budget.check()
  assert.equal(closed[0], 'of the network 3')
  assert.deepEqual(
    closed.filter((name) => !name.startsWith('of the network')),
    [],
  )
})

test('IPv6 addresses of one /56 are one network', () => {
  const { budget, open, closed } = startBudget()
  open('one', '2001:db8:0:1::1', 300)
  open('two', '2001:db8:0:2::1', 300)
  open('elsewhere', '2001:db8:0:100::1', 450)
  budget.check()
  assert.deepEqual(closed, ['two'])
})

test('Of connections that hold the same, the newest are closed', () => {
  const { budget, open, closed } = startBudget()
  for (const name of ['first', 'second', 'third', 'fourth']) open(name, '192.0.2.1', 260)
  budget.check()
  assert.deepEqual(closed, ['fourth', 'third'])
})

test('Signed-in people stay while strangers hold something, unless a session holds more than its share', () => {
  const { budget, open, closed } = startBudget()
  open('jane', '192.0.2.1', 60, 'session of jane')
  open('john', '192.0.2.1', 300, 'session of john')
  for (let count = 0; count < 7; count += 1) open('stranger', '192.0.2.1', 100)
  budget.check()
  assert.ok(closed.includes('stranger'))
  assert.ok(!closed.includes('jane'))
  const { budget: other, open: openThere, closed: closedThere } = startBudget()
  openThere('john', '192.0.2.1', 1100, 'session of john')
  openThere('jane', '192.0.2.1', 60, 'session of jane')
  other.check()
  assert.deepEqual(closedThere, ['john'])
})

test('A connection that was closed and waits for its client is destroyed when the budget is exceeded again', () => {
  const { budget, open, closed } = startBudget()
  const socket = open('lingering', '192.0.2.1', 1100)
  socket.end()
  budget.check()
  assert.deepEqual([closed, socket.destroyed], [[], true])
})

test('Much that arrives is noticed at once', () => {
  const { budget, open, closed } = startBudget()
  open('large', '192.0.2.1', 1100)
  budget.arrived(100)
  assert.deepEqual(closed, [])
  budget.arrived(100)
  assert.deepEqual(closed, ['large'])
})

test('The budget follows the limits of the container and of V8', () => {
  const heap = 268 * mebibyte
  const inMebibytes = (limit: number, workers: number) =>
    Math.round(budgetBytes(freeMemory(workers, limit * mebibyte), heap) / mebibyte)
  assert.deepEqual(
    [512, 256, 128].map((limit) => inMebibytes(limit, 1)),
    [134, 69, 27],
  )
  assert.deepEqual(
    [512, 256].map((limit) => inMebibytes(limit, 2)),
    [61, 19],
  )
  assert.equal(inMebibytes(64, 1), 5)
})

test('There are as many workers as have enough memory', () => {
  const workers = (limit: number, wanted: number) => workersWithin(wanted, limit * mebibyte)
  assert.deepEqual(
    [workers(512, 2), workers(256, 2), workers(128, 2), workers(128, 1), workers(512, 32)],
    [2, 2, 1, 1, 7],
  )
})

test('While a process is larger than it may be, half of the budget is left', () => {
  let processBytes = 100_000
  const closed: number[] = []
  const budget = new MemoryBudget(1000, {
    rejectedClients: { note: () => {} },
    growthBytes: 5000,
    processBytes: () => processBytes,
  })
  const socket = new Connection('192.0.2.1')
  budget.watch(socket, 0, { heldBytes: () => 600, close: () => void closed.push(600) })
  budget.check()
  assert.deepEqual(closed, [])
  processBytes += 6000
  budget.check()
  assert.deepEqual(closed, [600])
})

test('No connection is accepted while much memory of destroyed connections is not free yet', async () => {
  const budget = new MemoryBudget(1000, { rejectedClients: { note: () => {} } })
  const socket = new Connection('192.0.2.1')
  budget.watch(socket, 0, { heldBytes: () => 1100, close: () => void socket.destroy() })
  budget.check()
  assert.equal(budget.isFull, true)
  await new Promise((resolve) => socket.once('close', resolve))
  assert.equal(budget.isFull, false)
})
