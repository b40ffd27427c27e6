import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { MemoryBudget } from '../../src/limits/memory-budget.ts'

const budgetBytes = 1_000_000
const bufferedBytes = 200_000

/** A socket whose client always has the same number of bytes left to read. */
class Client extends Duplex {
  bytesWritten = bufferedBytes

  constructor(t: TestContext) {
    super({ highWaterMark: bufferedBytes * 2 })
    this.write(Buffer.alloc(bufferedBytes))
    t.after(() => this.destroy())
  }

  override _read(): void {}

  /** The callback is never called, so the bytes stay in the buffer. */
  override _write(): void {}

  /** Reads this number of bytes, and the application sends the same number again. */
  advance(bytes: number): void {
    this.bytesWritten += bytes
  }
}

function overloaded(t: TestContext, count: number) {
  let now = 0
  const budget = new MemoryBudget(budgetBytes, { rejectedClients: { note: () => {} }, now: () => now })
  const clients = Array.from({ length: count }, () => new Client(t))
  for (const client of clients) budget.watch(client, 0, { heldBytes: () => 0, close: () => client.destroy() })
  /** Moves the clock; each client reads at its rate, in bytes per second. */
  const pass = async (seconds: number, rateOf: (client: Client) => number) => {
    for (let step = 0; step < seconds * 10; step += 1) {
      now += 100
      for (const client of clients) client.advance(rateOf(client) / 10)
      budget.check()
      // A destroyed socket counts as closed.
      await turn()
    }
  }
  return { budget, clients, pass }
}

test('Clients that read slowly do not keep the memory limit exceeded', async (t) => {
  const { budget, clients, pass } = overloaded(t, 8)
  const [fast] = clients
  const rateOf = (client: Client) => (client === fast ? 4_000_000 : 20_000)
  await pass(1, rateOf)
  assert.equal(budget.admits(new Client(t), '192.0.2.1', undefined), false)
  await pass(10, rateOf)
  assert.equal(budget.admits(new Client(t), '192.0.2.1', undefined), true)
  assert.equal(fast?.destroyed, false)
  assert.equal(clients.filter(({ destroyed }) => !destroyed).length, 3)
})

test('Clients that stop reading one after the other do not keep the memory limit exceeded', async (t) => {
  const { budget, clients, pass } = overloaded(t, 6)
  const [first] = clients
  // Closing the first client leaves less than the limit, but more than the level below which
  // requests are served again.
  await pass(3, (client) => (client === first ? 0 : 2_000))
  await pass(3, () => 0)
  assert.equal(budget.admits(new Client(t), '192.0.2.1', undefined), true)
})
