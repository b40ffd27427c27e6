import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { folderWith } from '../support/command-line.ts'
import { processorTime } from '../support/processor-time.ts'
import { rejectedReload } from '../support/rejected-reload.ts'
import { secrets, startWorld } from '../support/world.ts'

const upstreams = (count: number, more: string) =>
  Array.from(
    { length: count },
    (_, index) =>
      `  app${index}: { url: http://127.0.0.1:9, path: /app${index}/, rules: [{ path: /admin/* }, { path: /admin }]${more} }\n`,
  ).join('')

/** One error in each upstream. */
const unknownSetting = ', unknwn: 5'

test('During a reload of 400 upstreams with an error each, the event loop turns and requests get responses', async (t) => {
  const { replicas, url } = await startWorld(t)
  const [replica] = replicas
  assert.ok(replica)
  writeFileSync(
    replica.file,
    readFileSync(replica.file, 'utf8').replace(/^upstreams:\n/m, `$&${upstreams(400, unknownSetting)}`),
  )
  let turns = 0
  let isOver = false
  const count = () => {
    turns += 1
    if (!isOver) setImmediate(count)
  }

  const rejected = rejectedReload(t, { file: replica.file, env: secrets }, (config) => replica.gateway.reload(config))
  count()
  const first = await Promise.race([rejected, fetch(url)])
  const faults = (await rejected)['faults'] as readonly string[]
  isOver = true

  assert.ok(first instanceof Response, 'the response does not wait for the reload')
  assert.equal(faults.length, 101, 'the log names the first hundred')
  assert.equal(faults.at(-1), 'and 300 more')
  assert.ok(turns > 400 / 16, `the event loop turned ${turns} times`)
})

for (const [what, more] of [
  ['an error each', unknownSetting],
  ['a warning each', ''],
  ['a test each', ', tests: [{ get: /, expect: sign_in }]'],
] as const)
  test(`Four times as many upstreams with ${what} take about four times as long to check`, (t) => {
    const timeFor = (count: number) => {
      const head =
        'version: 1\nexternal_url: https://orders.example.com\nprovider: { issuer: https://id.example.com, client_id: a, client_secret: { env: CLIENT_SECRET } }\n'
      const file = join(
        folderWith(t, { 'gateway.yaml': `${head}upstreams:\n${upstreams(count, more)}` }),
        'gateway.yaml',
      )
      const times = [1, 2, 3].map(() => {
        const used = processorTime()
        loadConfig(file, secrets)
        return used()
      })
      return Math.min(...times)
    }
    timeFor(100)

    const [some, many] = [timeFor(100), timeFor(400)]

    // Comparing every upstream with every other one would take sixteen times as long.
    assert.ok(many < 9 * some, `100 took ${some} ms, 400 took ${many} ms`)
  })
