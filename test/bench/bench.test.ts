import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { selfTimes } from '../../bench/cpu-profile.ts'
import type { LoadMessage, LoadOrder } from '../../bench/load/order.ts'
import { claimValues } from '../../bench/people.ts'
import { start, startServer } from '../../bench/process.ts'
import { targetsTable } from '../../bench/targets.ts'
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

test('A response with another status than 200 ends the measurement, and the error shows the response', async (t) => {
  const upstream = await startServer('upstream.ts')
  t.after(() => process.kill(upstream.pid))
  const clients = start('load/clients.ts')
  t.after(() => clients.kill())
  const carryOut = async (person: number | undefined): Promise<LoadMessage> => {
    const visitor = person === undefined ? { cookie: '' } : { cookie: '', person }
    const where = { port: Number(new URL(upstream.url).port), tls: false }
    const order = { ...where, kind: 'requests', bodyBytes: 1024, visitors: [visitor], connections: 2, ms: 50 } as const
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

test('The report says whether a target is reached or missed, and omits targets without a measurement', () => {
  const facts = new Map([
    ['cpu gatehouse-redis', 50],
    ['cpu nginx', 12.5],
    ['cpu caddy', 60],
    ['sign-in gatehouse-redis', 0.9],
    ['sign-in in requests of nginx gatehouse-redis', 110],
  ])
  const report = targetsTable(facts) ?? ''
  assert.match(report, /times nginx plain \| 0\.25 \| at least 0\.2 \| at least 0\.4 \| target reached/)
  assert.match(report, /times Caddy plain \| 1\.20 \| at least 1\.3 \| at least 2\.6 \| NOT reached/)
  assert.match(report, /a sign-in, ms of CPU \| 0\.90 \| .* \| aim reached/)
  assert.match(report, /where nginx takes 13\.5 µs for a request \(reckoned\) \| 1\.5 \| .* \| target reached/)
  assert.doesNotMatch(report, /mod_auth_openidc|NaN|undefined/)
  assert.equal(targetsTable(new Map()), undefined)
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
