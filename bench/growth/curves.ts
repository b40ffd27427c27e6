// What grows, in which sizes, and which operations may grow with it.
import { once } from 'node:events'
import { start } from '../process.ts'
import { multiplyKeys } from '../redis-figures.ts'
import type { StreamsOrder } from './opening.ts'
import { cookieOf, type Operation } from './operations.ts'
import type { World, WorldSize } from './world.ts'

export interface Curve {
  readonly name: string
  /** What grows, for titles and axes. */
  readonly axis: string
  readonly sizes: readonly number[]
  readonly operations: readonly Operation[]
  /** The configuration of a size. */
  readonly world: (size: number) => WorldSize
  /** Fills a world that has started. Resolves to what ends it. */
  readonly prepare?: (world: World, size: number) => Promise<() => unknown>
}

const requests: readonly Operation[] = ['request', 'cold', 'sign_in', 'logout']
/** More sessions are copies of stored ones, because storing a million takes minutes. */
const storedAtMost = 100_000

async function storeSessions(world: World, size: number): Promise<() => void> {
  const [redis] = world.servers
  if (size > 1) await world.fill(Math.min(size, storedAtMost), 0)
  if (redis !== undefined && size > storedAtMost) await multiplyKeys(redis, 0, size / storedAtMost)
  return () => {}
}

/** Opens streams of a hundred sessions, or of fewer. `opener` is a file of this folder. */
async function openStreams(world: World, count: number, opener: string): Promise<() => void> {
  const cookies = (await world.fill(Math.min(count, 100))).map(cookieOf)
  const streams = start(`growth/${opener}`)
  streams.once('exit', (code) => {
    if (code === 1) throw new Error(`${opener} failed`)
  })
  const ports = world.origins.map((origin) => Number(new URL(origin).port))
  streams.send({ ports, count, cookies } satisfies StreamsOrder)
  await once(streams, 'message')
  return () => void streams.kill()
}

/**
 * A process has at most half as many streams as it may have open files: 20,000 on many machines.
 */
const eventReplicas = 11

export const curves: readonly Curve[] = [
  {
    name: 'sessions',
    axis: 'sessions in Redis',
    sizes: [1, 1_000, 100_000, 1_000_000],
    operations: requests,
    world: () => ({}),
    prepare: storeSessions,
  },
  {
    name: 'streams',
    axis: 'open WebSockets of one process',
    sizes: [10, 1_000, 9_800],
    operations: ['idle', ...requests],
    world: () => ({}),
    prepare: (world, count) => openStreams(world, count, 'streams.ts'),
  },
  {
    name: 'events',
    axis: `open event streams of ${eventReplicas} replicas, HTTP/2`,
    sizes: [10, 10_000, 100_000],
    operations: ['idle', ...requests],
    world: () => ({ hasEvents: true, replicas: eventReplicas }),
    prepare: (world, count) => openStreams(world, count, 'event-streams.ts'),
  },
  {
    name: 'replicas',
    axis: 'replicas, one Redis',
    sizes: [1, 4, 16],
    operations: ['idle', ...requests, 'burst', 'refresh'],
    world: (replicas) => ({ replicas, tokenSeconds: 1 }),
  },
  {
    name: 'cluster',
    axis: 'replicas, a Cluster of six nodes',
    sizes: [1, 4, 16],
    operations: ['idle', ...requests, 'burst', 'refresh'],
    world: (replicas) => ({ replicas, isCluster: true, tokenSeconds: 1 }),
  },
  {
    name: 'upstreams',
    axis: 'upstreams with paths of one host',
    sizes: [1, 10, 200],
    operations: ['idle', ...requests, 'reload'],
    world: (upstreams) => ({ upstreams }),
  },
  {
    name: 'rules',
    axis: 'rules of an upstream, the last one matches',
    sizes: [1, 50, 1_000],
    operations: [...requests, 'reload'],
    world: (rules) => ({ rules }),
  },
  {
    name: 'claims',
    axis: 'claims of a person, each a header',
    sizes: [1, 20, 200],
    operations: [...requests, 'reload'],
    world: (claims) => ({ claims }),
  },
]
