import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { request } from 'undici'
import type { Contender } from '../../bench/contenders/contender.ts'
import { selfTimes } from '../../bench/cpu-profile.ts'
import type { LoadMessage, LoadOrder } from '../../bench/load/order.ts'
import { cookies, requestFields } from '../../bench/load/typical-fields.ts'
import type { Measured } from '../../bench/measure.ts'
import { hasSection, markersOf, replaceSection } from '../../bench/page.ts'
import { claimValues } from '../../bench/people.ts'
import { start, startServer } from '../../bench/process.ts'
import { roundsTable } from '../../bench/report.ts'
import { runInTurn, warmUp, type Figure } from '../../bench/rounds.ts'
import { forTargets, further } from '../../bench/scenarios/all.ts'
import { withRedis } from '../../bench/scenarios/requests.ts'
import type { Bench } from '../../bench/scenarios/scenario.ts'
import type { Stand } from '../../bench/stand.ts'
import { targetsTable, type Facts } from '../../bench/targets.ts'
import { bundledModules } from '../support/bundle.ts'
import { root } from '../support/command.ts'

test("A request that lacks a claim of the person, or has another person's claim, does not count as served", async (t) => {
  const upstream = await startServer('upstream.ts')
  t.after(() => process.kill(upstream.pid))
  const statusWith = async (claims: readonly string[]) => {
    const identity = Object.fromEntries(claims.map((value, index) => [`x-claim-${index}`, value]))
    const response = await fetch(`${upstream.url}/bytes/1024`, { headers: { ...identity, 'x-bench-person': '7' } })
    await response.arrayBuffer()
    return response.status
  }
  const claims = claimValues(7)
  assert.equal(claims.length, 10)
  assert.equal(await statusWith(claims), 200)

  assert.equal(await statusWith(claims.slice(1)), 417)
  assert.equal(await statusWith([...claims.slice(1), claimValues(8)[0] as string]), 417)
})

test('Real traffic that has lost header fields or cookies of the browser does not count as served', async (t) => {
  const upstream = await startServer('upstream.ts')
  t.after(() => process.kill(upstream.pid))
  const statusWith = async (cookie: string, fields = requestFields) => {
    const response = await request(`${upstream.url}/typical/1024`, { headers: { ...fields, cookie } })
    await response.body.dump()
    return response.statusCode
  }
  assert.equal(await statusWith(cookies.join('; ')), 200)
  assert.equal(await statusWith(cookies[0] as string), 417)
  const { 'accept-language': _, ...fewer } = requestFields
  assert.equal(await statusWith(cookies.join('; '), fewer), 417)
})

test('A response with another status than 200 ends the measurement, and the error shows the response', async (t) => {
  const upstream = await startServer('upstream.ts')
  t.after(() => process.kill(upstream.pid))
  const clients = start('load/clients.ts')
  t.after(() => clients.kill())
  const carryOut = async (person: number | undefined): Promise<LoadMessage> => {
    const visitor = person === undefined ? { cookie: '' } : { cookie: '', person }
    const where = { port: Number(new URL(upstream.url).port), tls: false }
    const order = {
      ...where,
      kind: 'requests',
      bodyBytes: 1024,
      fields: 'few',
      visitors: [visitor],
      connections: 2,
      ms: 50,
    } as const
    clients.send(order satisfies LoadOrder)
    await once(clients, 'message')
    clients.send('go')
    const [message] = (await once(clients, 'message')) as [LoadMessage]
    return message
  }
  const served = await carryOut(undefined)
  assert.ok(served.kind === 'done' && served.result.count > 0, JSON.stringify(served))

  const refused = await carryOut(7)
  assert.equal(refused.kind, 'failed')
  assert.match(refused.kind === 'failed' ? refused.reason : '', /417 Expectation Failed/)
})

test('The report says whether a target is met, how many rounds were quiet, and what was not measured', () => {
  const figure = (value: number, quiet = 3) => ({ value, quiet, rounds: 3, measured: 'today' })
  const rowsOf = (facts: Facts) => targetsTable(facts).split('\n')
  const rows = rowsOf(
    new Map<string, Figure>([
      ['cpu gatehouse-redis', figure(50)],
      ['cpu nginx', figure(12.5)],
      ['cpu caddy', figure(150, 1)],
      ['cpu oauth2-proxy-redis', figure(100, 2)],
      ['workers gatehouse-redis', { ...figure(1.9), isCalculated: true }],
      ['pause worst gatehouse-redis', { ...figure(9), measured: 'yesterday' }],
    ]),
  )
  const rowOf = (what: string) => rows.find((row) => row.includes(what)) ?? ''
  assert.match(rowOf('requests per CPU second, times nginx |'), /\| at least 0\.5 \| 0\.25 \| MISSED \|$/)
  assert.match(rowOf('times Caddy'), /\| at least 2.4 \| 3\.00 \| met, 1 of 3 rounds quiet \|$/)
  assert.match(rowOf('longest pause'), /\| 9 \| met \(yesterday\) \|$/)
  assert.match(rowOf('times oauth2-proxy with Redis'), /\| 2\.00 \| not judged, 2 of 3 rounds quiet \|/)
  assert.match(rowOf('mod_auth_openidc with Redis'), /\| at least 12 \| — \| not measured \|$/)
  assert.match(rowOf('two workers'), /\| 1\.90 \| calculated, does not count \|/)
  assert.doesNotMatch(rows.join('\n'), /NaN|undefined/)

  const names = ['gatehouse-redis', 'nginx', 'caddy', 'oauth2-proxy-redis']
  assert.match(targetsTable(new Map(names.map((name) => [`cpu ${name}`, figure(1)]))), /^today, unless/)

  const everything = new (class extends Map<string, Figure> {
    override get = () => figure(1)
  })()
  assert.match(targetsTable(everything), /^today, unless the result names another run:\n\n\| {2}\| target \|/)

  const nothing = rowsOf(new Map()).slice(2)
  assert.ok(nothing.length > 0 && nothing.every((row) => row.includes('| not measured |')), nothing.join('\n'))
})

test('A table of rounds says how many were quiet, unless all of them were', () => {
  const tableWith = (foreign: number, isStable = true) => {
    const round = { requestsPerSecond: 9, p50: 1, p99: 2, cpu: 40, memory: 2 ** 20, foreign }
    const warmedUp = { rounds: [round], warmUp: { isStable, windows: 2 } }
    const [quiet, other] = [{ title: 'quiet' }, { title: 'other' }] as unknown as Stand[]
    const measured = [
      [quiet, { ...warmedUp, rounds: [{ ...round, foreign: 0 }] }],
      [other, warmedUp],
    ]
    return roundsTable(new Map(measured as unknown as [Stand, Measured][]))
  }
  assert.doesNotMatch(tableWith(0), /quiet rounds|all/)
  assert.match(tableWith(0.5), /memory MB \| quiet rounds \|\n.*\n.* all \|\n.* 0 of 1, others 50 % \|$/)
  assert.match(tableWith(0, false), / all; not stable \|/)
})

test('Contenders take part once where the place of the sessions does not matter, and all if none has Redis', () => {
  const taking = (...names: string[]) => {
    const contenders = new Map(names.map((name) => [name, {} as Contender]))
    return [...withRedis({ contenders } as unknown as Bench).contenders.keys()]
  }
  assert.deepEqual(taking('a-b-redis', 'a-b-shm', 'nginx', 'http-proxy'), ['a-b-redis', 'nginx', 'http-proxy'])
  assert.deepEqual(taking('a-b-shm', 'c-redis'), ['a-b-shm', 'c-redis'])
})

test('A warm-up ends when two windows differ by less than 5 %, not before 2 s of work, or after eight', async () => {
  const warmedUpBy = async (cpu: readonly number[], cpuSeconds = 1) => {
    let windows = 0
    const { isStable } = await warmUp(async () => ({ each: cpu[windows++ % cpu.length] as number, cpuSeconds }))
    return { windows, isStable }
  }
  assert.deepEqual(await warmedUpBy([90, 60, 41, 40, 40]), { windows: 4, isStable: true })
  assert.deepEqual(await warmedUpBy([40, 50]), { windows: 8, isStable: false })
  // A busy machine: the contender gets a third of its processor, and still runs slow code.
  assert.deepEqual(await warmedUpBy([97, 96, 95, 60, 41, 41, 41], 0.34), { windows: 6, isStable: true })
})

test('A round that other programs disturbed is repeated, but not after the time for repetitions', async () => {
  const plan = { rounds: 2, seconds: 1, warmUp: 1, patience: 0, repeatUntil: Infinity }
  const foreignOf = async (repeatUntil: number) => {
    const foreign = [0.5, 0, 0.2, 0]
    const measured = await runInTurn(['a'], { ...plan, repeatUntil }, async () => ({ foreign: foreign.shift() ?? 1 }))
    return measured.get('a')?.map((round) => round.foreign)
  }
  assert.deepEqual(await foreignOf(Infinity), [0, 0])
  assert.deepEqual(await foreignOf(0), [0, 0.5])
})

test('Each second turn goes backwards, so that no contender always has its round after the same one', async () => {
  const plan = { rounds: 2, seconds: 1, warmUp: 1, patience: 0, repeatUntil: Infinity }
  const turns: string[] = []
  await runInTurn(['a', 'b', 'c'], plan, async (each) => {
    turns.push(each)
    return { foreign: 0 }
  })
  assert.equal(turns.join(''), 'abccba')
})

const performancePage = readFileSync(join(root, 'docs/performance.md'), 'utf8')
const shown = [...forTargets, ...further].filter(({ name }) => hasSection(performancePage, name))
const sections = ['contenders', 'targets', ...shown.map(({ name }) => name)]

for (const section of sections)
  test(`The report of the bench replaces what is between the markers of ${section}, and nothing else`, () => {
    const [begin, end] = markersOf(section)
    const replaced = replaceSection(performancePage, section, 'a new table')
    const [before = '', after = ''] = [performancePage.split(begin)[0], performancePage.split(end)[1]]
    assert.equal(replaced, `${before}${begin}\n\na new table\n\n${end}${after}`)
  })

test('A page without the markers of a section, with two of them or in the wrong order, is not changed', () => {
  const [begin, end] = markersOf('hot-path')
  for (const page of ['', begin, `${end} ${begin}`, `${begin} ${end} ${begin}`])
    assert.throws(() => replaceSection(page, 'hot-path', 'a table'), /once|wrong order/)
})

test('A profile lists functions by their own time, summed over all callers, at their place in the sources', () => {
  const [module] = bundledModules().filter(({ text }) => text.includes('\nfunction createLog('))
  const url = pathToFileURL(join(root, 'dist', module?.name ?? '')).href
  const lineOf = (text: string, code: string) => text.slice(0, text.indexOf(code)).split('\n').length
  const inModule = lineOf(module?.text ?? '', 'function createLog(') - 1
  const inSource = lineOf(readFileSync(join(root, 'src/observe/writing-log.ts'), 'utf8'), 'export function createLog(')
  const frame = (functionName: string, url: string, lineNumber: number) => ({
    functionName,
    url,
    lineNumber,
    columnNumber: 9,
  })
  const nodes = [
    { id: 1, callFrame: frame('(idle)', '', -1) },
    { id: 2, callFrame: frame('carry', url, inModule) },
    { id: 3, callFrame: frame('carry', url, inModule) },
    { id: 4, callFrame: frame('emit', 'node:events', 470) },
  ]
  const samples = [2, 1, 3, 4]
  assert.deepEqual(selfTimes({ nodes, samples, timeDeltas: [0, 100, 1000, 50, 30] }), [
    { functionName: 'carry', place: `observe/writing-log.ts:${inSource}`, micros: 150 },
    { functionName: 'emit', place: 'node:events:471', micros: 30 },
  ])
})
