import assert from 'node:assert/strict'
import cluster from 'node:cluster'
import { once } from 'node:events'
import { createServer } from 'node:net'
import process from 'node:process'
import { test, type TestContext } from 'node:test'
import { privatePartsLeftOut } from '../../src/core/node-private-parts.ts'
import { tryPrivateParts } from '../../src/listener/private-parts-trial.ts'

/** In a worker. `node:cluster` gives the same port to all workers that listen on port 0. */
const roles: Readonly<Record<string, () => Promise<unknown>>> = {
  async closing() {
    await once(createServer((connection) => connection.destroy()).listen(0, '127.0.0.1'), 'listening')
    return 'listening'
  },
  async trying() {
    await tryPrivateParts({ warn: () => {} } as never)
    return privatePartsLeftOut() ?? 'used'
  },
}

const role = roles[String(process.env['ROLE'])]
if (cluster.isWorker && role !== undefined) process.send?.(await role())
else
  test('A worker tries the private parts on a connection of its own, also while another one closes', async (t) => {
    assert.equal(await resultOf(t, 'closing'), 'listening')
    assert.equal(await resultOf(t, 'trying'), privatePartsLeftOut() ?? 'used')
  })

async function resultOf(t: TestContext, ROLE: string): Promise<unknown> {
  cluster.setupPrimary({ exec: import.meta.filename, args: [] })
  const worker = cluster.fork({ ROLE, NODE_TEST_CONTEXT: '' })
  t.after(() => worker.process.kill('SIGKILL'))
  const [result] = (await once(worker, 'message')) as [unknown]
  return result
}
