import { once } from 'node:events'
import { Redis } from 'ioredis'
import type { Bed } from '../bed.ts'
import type { Contender } from '../contenders/contender.ts'
import { placeOf } from '../contenders/gatehouse.ts'
import type { Filled, FillPlace } from '../fill.ts'
import type { Visitor } from '../load/order.ts'
import { usualLoad } from '../measure.ts'
import { personOf } from '../people.ts'
import { start } from '../process.ts'
import { readsOf } from '../redis-figures.ts'
import { figureOf } from '../rounds.ts'
import type { Stand } from '../stand.ts'
import { measureAll } from './requests.ts'
import type { Bench, Scenario } from './scenario.ts'

/**
 * The near-cache holds about 40,000 of these sessions. When more of them take turns, the least
 * recently used one is the next one, so each request reads its session from Redis.
 */
const counts = { hits: 10_000, misses: 50_000 }

/**
 * Requests whose session is in the memory of the gateway, and requests whose session is not. Two
 * gateways, so that neither drops the sessions of the other. The sessions are stored without
 * sign-ins.
 */
export const misses: Scenario = {
  name: 'misses',
  title: '1 KiB, 32 connections; sessions in memory, and sessions that each request reads from Redis',
  async run(bench) {
    const contender = bench.contenders.get('gatehouse-redis')
    if (contender === undefined) throw new Error('gatehouse-redis has to take part')
    const { hits, misses } = counts
    const inMemory = await standWith(bench, contender, hits, 'in memory')
    const inRedis = await standWith(bench, contender, misses, 'read from Redis')
    const stands = [inMemory, inRedis]
    for (const other of bench.contenders.values())
      if (other.name.startsWith(`${contender.name}-`))
        stands.push(await standWith(bench, other, misses, 'read from Redis'))
    for (const stand of stands) await requestEach(bench.bed, stand)
    const redis = new Redis(bench.bed.redisPort, '127.0.0.1')
    const totals = new Map(stands.map((stand) => [stand, { reads: 0, requests: 0 }]))
    const measured = await measureAll(bench, stands, usualLoad, async (stand, round) => {
      const count = async () => [await readsOf(redis), bench.bed.served(stand.port)] as const
      const before = await count()
      const result = await round()
      const after = await count()
      const sum = totals.get(stand)
      if (sum === undefined) return result
      sum.reads += after[0] - before[0]
      sum.requests += after[1] - before[1]
      return result
    })
    redis.disconnect()
    for (const [stand, fact] of [
      [inMemory, 'cpu hit'],
      [inRedis, 'cpu miss'],
    ] as const)
      bench.facts.set(
        `${fact} ${contender.name}`,
        figureOf(measured.get(stand)?.rounds, ({ cpu }) => cpu),
      )
    const [hit, miss] = [...totals.values()].map(({ reads, requests }) => (reads / requests).toFixed(2))
    bench.print(`For each request, Redis read ${hit} sessions in the first row, and ${miss} in the second.`)
  },
}

/** Sends at least one request of each session, so that as many as possible are in memory. */
export async function requestEach(bed: Bed, stand: Stand): Promise<void> {
  const { port, tls } = stand
  const end = bed.served(port) + stand.visitors.length
  while (bed.served(port) < end) await bed.load({ ...usualLoad, port, tls, visitors: stand.visitors, ms: 1_000 })
}

async function standWith(bench: Bench, contender: Contender, count: number, what: string): Promise<Stand> {
  const stand = await bench.stand(contender, { title: `${contender.title}: ${what}` })
  return withStored(bench.bed, stand, count)
}

/** The same with `count` sessions of new people, which are stored without a sign-in. */
export async function withStored(bed: Bed, stand: Stand, count = counts.misses): Promise<Stand> {
  const { contender, port } = stand
  const cookie = stand.visitors[0]?.cookie ?? ''
  const stored = await fill(placeOf(bed, { name: contender.name, port }), count)
  const visitors = stored.map(({ id, sub }): Visitor => {
    return { cookie: cookie.replace(/(gatehouse)=[^;]*/, `$1=${id}`), person: personOf(sub) }
  })
  // A round begins with the first visitor. So each round gets them in another order, and continues
  // where the previous one ended.
  return {
    ...stand,
    get visitors() {
      const next = bed.served(port) % count
      return [...visitors.slice(next), ...visitors.slice(0, next)]
    },
  }
}

async function fill(place: FillPlace, count: number): Promise<readonly Filled[]> {
  const filler = start('fill.ts')
  filler.send({ kind: 'fill', place, count, sample: count })
  const [filled] = (await once(filler, 'message')) as [readonly Filled[]]
  filler.kill()
  return filled
}
