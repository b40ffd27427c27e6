import { setTimeout as wait } from 'node:timers/promises'
import type { LoadOrder } from '../load/order.ts'
import { usualLoad } from '../measure.ts'
import { table } from '../report.ts'
import type { Stand } from '../stand.ts'
import { memoryBytes } from '../usage.ts'
import { requestEach, withStored } from './misses.ts'
import type { Scenario } from './scenario.ts'

const connections = 2_000
/** In seconds since the last burst. V8 collects old objects after 100 s without a collection. */
const pauses = [10, 150]

/**
 * Whether memory returns after bursts: of sessions, of connections, of uploads and of WebSockets.
 */
export const bursts: Scenario = {
  name: 'bursts',
  title: 'Resident memory after bursts',
  async run({ bed, contenders, stand, print }) {
    const contender = contenders.get('gatehouse-redis')
    if (contender === undefined) throw new Error('gatehouse-redis has to take part')
    const one = await stand(contender)
    const many = await withStored(bed, one)
    const rows: string[][] = []
    const measure = (after: string) => rows.push([after, (memoryBytes(one.pid) / 2 ** 20).toFixed(0)])
    const orderOf = ({ port, tls, visitors }: Stand) => ({ port, tls, visitors, ms: 1_000 })
    const burst = async (after: string, order: LoadOrder) => {
      await bed.load(order)
      measure(after)
    }
    measure('the start')
    await burst('requests of one session', { ...usualLoad, ...orderOf(one) })
    for (let time = 0; time < 2; time += 1) await requestEach(bed, many)
    measure(`${many.visitors.length} sessions, twice`)
    await burst(`${connections} connections`, { ...usualLoad, ...orderOf(one), connections })
    const uploadBytes = 100 * 1024
    await burst(`${connections} uploads at a time`, { ...usualLoad, ...orderOf(one), connections, uploadBytes })
    await burst(`${connections} WebSockets`, { kind: 'websockets', areIdle: true, ...orderOf(one), connections })
    const over = performance.now()
    for (const pause of pauses) {
      await wait(over + pause * 1000 - performance.now())
      measure(`${pause} s without requests`)
    }
    print(table(['after', 'resident memory, MB'], rows))
  },
}
