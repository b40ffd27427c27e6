// The operations whose cost is measured, and the cost of one of them.
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, Pool, setGlobalDispatcher } from 'undici'
import { Browser } from '../../test/support/browser.ts'
import type { Bed } from '../bed.ts'
import type { Filled } from '../fill.ts'
import { personOf } from '../people.ts'
import type { Totals, World } from './world.ts'

/** What an operation costs, or what a second without requests does. */
export type Cost = Totals

export type Operation = 'idle' | 'request' | 'cold' | 'sign_in' | 'refresh' | 'logout' | 'burst' | 'reload'

/** How much of each operation a round does. */
export interface Counts {
  /** Sessions that are read, and then ended. */
  readonly sessions: number
  readonly signIns: number
  readonly requestMs: number
  readonly idleMs: number
}

const atOnce = 8
/** How many requests a burst has at a time. Processes then read several notices at once. */
const inBurst = 64
const page = '/bytes/1024'

/**
 * One round: the cost of each operation, without what the processes would have used in that time
 * anyway.
 */
export async function measureRound(
  bed: Bed,
  world: World,
  { sessions, signIns, requestMs, idleMs }: Counts,
  isWanted: (operation: Operation) => boolean,
): Promise<Partial<Record<Operation, Cost>>> {
  const costs: Partial<Record<Operation, Cost>> = {}
  const filled = await world.fill(isWanted('burst') ? 2 * sessions : sessions)
  const tokens = await Promise.all(
    filled.map(({ sub, sid }) => bed.provider.logoutToken(world.client_id, personOf(sub), sid)),
  )
  const [origin = ''] = world.origins
  const pool = new Pool(origin, { connections: inBurst })
  const idle = await costOf(world, async () => (await wait(idleMs), idleMs / 1000))
  const measured = async (operation: Operation, work: () => Promise<number>) => {
    if (isWanted(operation)) costs[operation] = await costOf(world, work, idle)
  }
  if (isWanted('idle')) costs.idle = idle
  const cookies = filled.slice(0, sessions).map(cookieOf)
  // Without this, the first sessions also pay for the new connections.
  for (const cookie of cookies.slice(0, atOnce)) await ask(pool, cookie)
  await measured('cold', () => eachOf(cookies.slice(atOnce), (cookie) => ask(pool, cookie)))
  const order = { kind: 'requests', port: Number(new URL(origin).port), tls: false, bodyBytes: 1024 } as const
  const visitors = [{ cookie: cookies[0] as string }]
  await measured('request', async () => {
    const load = { ...order, visitors, fields: 'few', connections: atOnce, ms: requestMs } as const
    return (await bed.load(load)).count
  })
  const post = (token: string) => postLogoutToken(pool, token)
  await measured('logout', () => eachOf(tokens.slice(0, sessions), post))
  await measured('burst', () => eachOf(tokens.slice(sessions), post, inBurst))
  // A reload of the gateway closes connections that are kept, so each round has its own.
  const browsers = new Agent()
  setGlobalDispatcher(browsers)
  const signedIn: string[] = []
  const signingIn = async () => void signedIn.push(await signIn(origin))
  await measured('sign_in', () => eachOf(Array.from({ length: signIns }), signingIn))
  if (isWanted('refresh')) await wait(1000 * (world.size.tokenSeconds ?? NaN))
  await measured('refresh', () => eachOf(signedIn, (cookie) => ask(pool, cookie), inBurst))
  await browsers.destroy()
  await measured('reload', async () => (await world.reload(), 1))
  await pool.destroy()
  return costs
}

/** @param work resolves to how often it did the operation */
async function costOf(world: World, work: () => Promise<number>, idle?: Cost): Promise<Cost> {
  const [startedAt, before] = [performance.now(), await world.totals()]
  const count = await work()
  const [seconds, after] = [(performance.now() - startedAt) / 1000, await world.totals()]
  const of = (kind: keyof Totals) => (after[kind] - before[kind] - seconds * (idle?.[kind] ?? 0)) / count
  return costsBy(of)
}

const costKinds = ['gateway', 'redis', 'notices', 'commands', 'bytes'] as const satisfies readonly (keyof Cost)[]

/** A value for each kind of cost. */
export function costsBy<T>(of: (kind: keyof Cost) => T): Record<keyof Cost, T> {
  return Object.fromEntries(costKinds.map((kind) => [kind, of(kind)])) as Record<keyof Cost, T>
}

/** Does the work for each item, some at the same time. Resolves to their number. */
async function eachOf<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
  concurrency = atOnce,
): Promise<number> {
  const left = items.values()
  const worker = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return items.length
}

export function cookieOf({ id }: Pick<Filled, 'id'>): string {
  return `gatehouse=${id}`
}

async function ask(pool: Pool, cookie: string): Promise<void> {
  const { statusCode, body } = await pool.request({ method: 'GET', path: page, headers: { cookie } })
  await body.dump()
  if (statusCode !== 200) throw new Error(`a request got ${statusCode}`)
}

async function postLogoutToken(pool: Pool, logout_token: string): Promise<void> {
  const { statusCode, body } = await pool.request({
    method: 'POST',
    path: '/.gatehouse/backchannel-logout',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ logout_token }).toString(),
  })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`a Logout Token got ${statusCode}: ${text.slice(0, 200)}`)
}

/** Resolves to the cookie of the new session. */
async function signIn(origin: string): Promise<string> {
  const browser = new Browser('person')
  const { status, url } = await browser.get(`${origin}${page}`)
  if (status !== 200) throw new Error(`a sign-in ended at ${url} with ${status}`)
  return browser.cookieHeader
}
