import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { readSizeCall } from '../../src/cli/size.ts'
import { count, demandOf, figures, sizeOf } from '../../src/cli/sizing.ts'
import { recordingTerminal } from '../support/command-line.ts'

const page = readFileSync(new URL('../../docs/sizing.md', import.meta.url), 'utf8')

async function size(...argv: readonly string[]): Promise<string> {
  const { terminal, said } = recordingTerminal()
  const call = readSizeCall(argv)
  assert.ok('carryOut' in call, JSON.stringify(call))
  assert.equal(await call.carryOut(terminal), 0)
  return said.out
}

test('size calculates from what people do, and names the defaults that it took', async () => {
  const text = await size('--people', '5000', '--requests', '200')

  assert.match(text, /^ {2}requests {8}200$/m)
  assert.match(text, /^ {2}sign-ins {8}2\.78 {3}\(default: all people within half an hour\)$/m)
  assert.match(text, /^ {2}replicas {8}2, each with workers: 1$/m)
  assert.match(text, /Nothing is extrapolated/)
  assert.ok(page.includes(`$ gatehouse size --people 5000 --requests 200\n${text}\`\`\``), 'docs/sizing.md shows it')
})

test('size --format json has the same result for programs', async () => {
  const result = JSON.parse(await size('--people=2000', '--sign-ins=10', '--logouts=0', '--format=json'))
  const expected = sizeOf(demandOf({ people: 2000, signIns: 10, logouts: 0 }))

  assert.equal(result.version, 1)
  assert.deepEqual(result.demand, { people: 2000, requests: 2000 / 3, sign_ins: 10, logouts: 0, streams: 0 })
  assert.equal(result.gateway.cpus, expected.cpus)
  assert.equal(result.redis.commands_per_second, expected.redis.commands)
  assert.deepEqual(result.figures, figures)
})

test('Twice the people with twice the work need twice the processors and twice the memory of Redis', () => {
  const [one, two] = [100_000, 200_000].map((people) =>
    sizeOf({ people, requests: 0, signIns: people, logouts: 0, streams: 0 }),
  )

  assert.ok(one && two)
  assert.equal(two.cpus, 2 * one.cpus)
  assert.equal(two.redis.bytes, 2 * one.redis.bytes)
  assert.equal(two.redis.bytes, 200_000 * (figures.redisSession.value + figures.redisExpired.value) * 1.25)
})

test('One replica can be lost, and a worker uses at most half of its processor', () => {
  for (const requests of [0, 10_000, 100_000, 3_000_000]) {
    const { cpus, workers, replicas } = sizeOf(demandOf({ people: 1_000_000, requests }))

    assert.ok(replicas >= 2)
    assert.ok((replicas - 1) * workers * 0.5 >= cpus, `${requests}`)
  }
})

test('The memory of a worker has a bound for sessions, and room for its streams', () => {
  const of = (people: number, streams: number) => sizeOf(demandOf({ people, requests: 0, streams })).workerBytes

  assert.equal(of(50_000, 0), of(10_000_000, 0))
  assert.equal(of(100, 1000) - of(100, 0), 1000 * figures.streamMemory.value)
})

for (const [people, reasons] of [
  ['10000', []],
  ['1000001', ['sessions', 'processes', 'Cluster']],
] as const)
  test(`size says what is extrapolated for ${people} people`, async () => {
    const text = await size('--people', people)

    for (const word of reasons) assert.match(text, new RegExp(`^ {2}- .*${word}`, 'm'))
    assert.equal([...text.matchAll(/^ {2}- /gm)].length, reasons.length)
  })

for (const [argv, fault] of [
  [[], /--people is missing/],
  [['--people=-1'], /--people must be a number from 0 to 10,000,000,000, not "-1"/],
  [['--people', 'many'], /--people must be a number/],
  [['--people', '1e400'], /--people must be a number/],
  [['--people', '20000000000'], /--people must be a number/],
  [['--people', '1.5'], /--people must be a whole number/],
  [['--people', '1', '--requests', ''], /--requests must be a number/],
  [['--people', '1', '--request', '1'], /unknown option --request; did you mean --requests/],
  [['--people', '1', '--format', 'xml'], /--format must be one of/],
  [['5000'], /unexpected argument/],
] as const)
  test(`size refuses ${JSON.stringify(argv)}`, () => {
    const call = readSizeCall(argv)

    assert.match('fault' in call ? call.fault : '', fault)
  })

test('The page about sizing has the figures of the calculator', () => {
  const [, section = ''] = /^## The figures$([^]*?)^## /m.exec(page) ?? []
  const rows = [...section.matchAll(/^\| (.+?) +\| +(.+?) \| (\S+) +\| `(.+?)` +\|$/gm)].map(([, ...cells]) => cells)

  assert.deepEqual(
    rows,
    Object.values(figures).map(({ value, unit, what, measured, by }) => [
      what,
      `${count(value)} ${unit}`,
      measured,
      by,
    ]),
  )
})
