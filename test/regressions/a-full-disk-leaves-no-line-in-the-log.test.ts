import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Browser } from '../support/browser.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { smallDisk } from '../support/small-disk.ts'

test('A full disk under the file of sessions is in the log, and a logout is not acknowledged until it is kept', async (t) => {
  const disk = smallDisk(t)
  if (disk === undefined) return t.skip('only root can mount a small disk')
  const around = await prepareGateway(t, { store: `{ file: "${disk.folder}/sessions.db" }` })
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const people = Array.from({ length: 5 }, () => new Browser('jane'))
  for (const person of people) await person.get(`${around.url}/`)
  const sids = around.provider.sessions().map(({ sid }) => sid ?? '')
  disk.fill()

  // The file of the WAL may have room for the first endings.
  const acknowledge = (index: number) => around.provider.endSession(sids[index] ?? assert.fail('all are acknowledged'))
  let refused = 0
  let outcome = await acknowledge(refused)
  for (; outcome.kind === 'delivered' && outcome.status === 200; outcome = await acknowledge(refused)) refused += 1

  assert.deepEqual(outcome, { kind: 'delivered', status: 503 })
  const line = await gateway.said('store.unavailable')
  assert.equal(line['hint'], 'the disk is full')
  assert.match(String(line['reason']), /full/)
  // Other people are still served, so the gateway may get requests.
  assert.equal((await people[refused]?.fetch(`${around.url}/`))?.status, 401)
  assert.equal((await people.at(-1)?.fetch(`${around.url}/`))?.status, 200)
  assert.equal((await fetch(`${around.adminUrl}/ready`)).status, 200)

  disk.free()
  await gateway.said('store.available')
  assert.equal(gateway.log().filter(({ msg }) => msg === 'store.unavailable').length, 1)
})
