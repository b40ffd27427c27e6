import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { folderWith } from '../support/command-line.ts'
import { countedCalls } from '../support/counted-calls.ts'
import { rejectedReload } from '../support/rejected-reload.ts'
import { secrets, startWorld } from '../support/world.ts'

/** @param more further settings, where NAME is the name of the upstream */
const upstreams = (count: number, more: string) =>
  Array.from({ length: count }, (_, index) =>
    `  NAME: { url: http://127.0.0.1:9, path: /NAME/, rules: [{ path: /admin/* }, { path: /admin }]${more} }\n`.replaceAll(
      'NAME',
      `app${index}`,
    ),
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
  // The paths of one host are searched in turn, also for a request.
  ['a test each', ', external_url: https://NAME.example.com, tests: [{ get: /, expect: sign_in }]'],
] as const)
  test(`No function is called for each pair of upstreams with ${what}`, async (t) => {
    const head =
      'version: 1\nexternal_url: https://orders.example.com\nprovider: { issuer: https://id.example.com, client_id: a, client_secret: { env: CLIENT_SECRET } }\n'
    const callsFor = (count: number) => {
      const folder = folderWith(t, { 'gateway.yaml': `${head}upstreams:\n${upstreams(count, more)}` })
      return countedCalls(() => {
        const loaded = loadConfig(join(folder, 'gateway.yaml'), secrets)
        if (loaded.ok) failingTests(loaded.config)
      })
    }

    const [one, some, many] = [await callsFor(1), await callsFor(101), await callsFor(201)]

    // For each pair of upstreams, the second hundred would need three times as many as the first.
    const tooMany = [...many].filter(([name, count]) => {
      const first = (some.get(name) ?? 0) - (one.get(name) ?? 0)
      const second = count - (some.get(name) ?? 0)
      return second > 5_000 && second > 2 * first
    })
    assert.deepEqual(tooMany, [])
  })
