// Measures the cost of many sessions: memory in Redis, a sign-in, a request, a logout, and what
// remains when all have ended. `npm run bench:sessions`; see bench/README.md.
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { Client } from 'undici'
import { demoPeople } from '../examples/demo/people.ts'
import { startDemoProvider, type DemoProvider } from '../examples/demo/provider.ts'
import { Browser } from '../test/support/browser.ts'
import { freePort } from '../test/support/free-port.ts'
import { startRedis } from '../test/support/redis.ts'
import type { Filled, FillOrder, FillPlace } from './fill.ts'
import { start, startGateway, startServer } from './process.ts'
import {
  letExpire,
  memoryOf,
  microsOf,
  residentMemoryOf,
  sealedBytesIn,
  trafficOf,
  type Traffic,
} from './redis-figures.ts'
import { table } from './report.ts'
import { untilQuiet } from './rounds.ts'
import { exactMicros } from './usage.ts'

/** A gateway, and a Redis with a given number of sessions. */
interface Crowd {
  readonly count: number
  readonly url: string
  /** The process ID of the gateway. */
  readonly pid: number
  readonly place: FillPlace
  readonly redis: Redis
  readonly provider: DemoProvider
  readonly client: Client
  /** Some of the sessions. The gateway has received no request of them yet. */
  readonly unseen: Filled[]
  readonly timings: Record<Step, Timing>
  readonly figures: Partial<Record<Figure, number>>
}

type Step = 'sign_in' | 'callback' | 'cold' | 'warm' | 'logout'

/**
 * The results of a repeated step: the time of each run in ms, and of all runs the processor time in
 * µs and the traffic of Redis.
 */
interface Timing {
  readonly latencies: number[]
  gateway: number
  redis: number
  commands: number
  received: number
  sent: number
}

type Figure =
  'record bytes' | 'bytes' | 'resident bytes' | 'keys' | 'ended' | 'expired' | 'bytes of an expired one' | 'keys left'

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '1000,100000,1000000' },
    rounds: { type: 'string', default: '15' },
    each: { type: 'string', default: '50' },
    fillers: { type: 'string', default: '2' },
    patience: { type: 'string', default: '2' },
    workers: { type: 'string', default: '1' },
  },
})
const sizes = values.sizes.split(',').map(Number)
const rounds = Number(values.rounds)
const each = Number(values.each)
/** How long to wait before each measurement until other programs are idle, in seconds. */
const patience = Number(values.patience)
if ((rounds + 1) * each > Math.min(...sizes))
  throw new RangeError('each step takes a session that was not seen yet: take fewer --rounds, or --each')

const over: (() => unknown)[] = []
const scope = { after: (tidy: () => unknown) => void over.push(tidy) }
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
scope.after(() => rmSync(folder, { recursive: true, force: true }))
const page = '/bytes/1024'
const upstream = await startServer('upstream.ts')
const fillers = Array.from({ length: Number(values.fillers) }, () => start('fill.ts'))
// With 50 people, each has few sessions, and the page for choosing a person stays short.
const people = Array.from({ length: 50 }, (_, n) => ({ ...demoPeople[0], sub: `person-${n}` })) as typeof demoPeople

const crowds: Crowd[] = []
for (const count of sizes) crowds.push(await gather(count))
for (const crowd of crowds) await measure(crowd, noTimings())
for (let round = 0; round < rounds; round += 1)
  for (const at of crowds.keys()) {
    // The set-ups take turns, and each one is first equally often.
    const crowd = crowds[(at + round) % crowds.length] as Crowd
    await measure(crowd, crowd.timings)
  }
for (const crowd of crowds) await disperse(crowd)
report()
for (const tidy of over.reverse()) await tidy()
process.exit()

function noTimings(): Record<Step, Timing> {
  const none = () => ({ latencies: [], gateway: 0, redis: 0, commands: 0, received: 0, sent: 0 })
  return { sign_in: none(), callback: none(), cold: none(), warm: none(), logout: none() }
}

/** Starts a gateway with its servers, and stores the sessions. */
async function gather(count: number): Promise<Crowd> {
  const server = await startRedis(scope)
  const [port, providerPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const env = { CLIENT_SECRET: 'correct horse battery staple', SESSION_KEY: Buffer.alloc(32, 1).toString('base64') }
  const provider = await startDemoProvider({
    host: '127.0.0.1',
    port: providerPort,
    issuer: new URL(`http://127.0.0.1:${providerPort}`),
    client_id: 'bench',
    client_secret: env.CLIENT_SECRET,
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
    people,
  })
  const file = join(folder, `${count}.yaml`)
  writeFileSync(
    file,
    `version: 1
listen: 127.0.0.1:${port}
external_url: ${url}
workers: ${values.workers}
log: { level: warn }
provider: { issuer: "${provider.issuer}", client_id: bench, client_secret: { env: CLIENT_SECRET } }
session:
  keys: [{ env: SESSION_KEY }]
  store: { redis: { url: "${server.url}" } }
upstreams:
  application:
    url: ${upstream.url}
    headers: { X-Remote-User: sub, X-Email: email }
`,
  )
  const { pid } = await startGateway(file, env)
  const crowd: Crowd = {
    count,
    url,
    pid,
    place: {
      redis: server.url,
      issuer: provider.issuer,
      client_id: 'bench',
      sessionKey: env.SESSION_KEY,
      keyPrefix: 'gatehouse:',
    },
    redis: new Redis(server.port, '127.0.0.1'),
    provider,
    client: new Client(url),
    unseen: [],
    timings: noTimings(),
    figures: {},
  }
  scope.after(async () => {
    await crowd.client.destroy()
    crowd.redis.disconnect()
    process.kill(pid, 'SIGTERM')
    await provider.close()
  })
  await fill(crowd)
  return crowd
}

async function fill({ count, place, redis, figures, unseen, ...crowd }: Crowd): Promise<void> {
  // A few sessions first, which end again, so that Redis has loaded scripts and allocated buffers
  // before its memory is read.
  const first = (await order<Filled[]>({ kind: 'fill', place, count: 20, sample: 20 })).flat()
  for (const session of first) await postLogoutToken(crowd, await crowd.provider.logoutToken(session))

  const before = { bytes: await memoryOf(redis), resident: await residentMemoryOf(redis), keys: await redis.dbsize() }
  const startedAt = performance.now()
  const share = { count: Math.ceil(count / fillers.length), sample: Math.ceil(((rounds + 1) * each) / fillers.length) }
  unseen.push(...(await order<Filled[]>({ kind: 'fill', place, ...share })).flat())
  console.error(`${thousands(count)} sessions stored in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  const stored = share.count * fillers.length
  figures['bytes'] = ((await memoryOf(redis)) - before.bytes) / stored
  figures['resident bytes'] = ((await residentMemoryOf(redis)) - before.resident) / stored
  figures['keys'] = ((await redis.dbsize()) - before.keys) / stored
  figures['record bytes'] = await sealedBytesIn(redis)
}

/** Sends the same order to all filling processes. */
async function order<T>(order: FillOrder): Promise<T[]> {
  return Promise.all(
    fillers.map(async (filler) => {
      filler.send(order)
      const [result] = (await once(filler, 'message')) as [T]
      return result
    }),
  )
}

/** Runs each step several times, with sessions that are not in the memory of the gateway. */
async function measure(crowd: Crowd, timings: Record<Step, Timing>): Promise<void> {
  const chosen = crowd.unseen.splice(0, each)
  await untilQuiet(patience)
  const timed = async (step: Step, work: (latencies: number[]) => Promise<void>) => {
    const [gateway, redis] = [exactMicros(crowd.pid), await microsOf(crowd.redis)]
    const traffic = await trafficOf(crowd.redis)
    // Reading the traffic is traffic too.
    const reading = between(traffic, await trafficOf(crowd.redis))
    await work(timings[step].latencies)
    const all = between(traffic, await trafficOf(crowd.redis))
    for (const kind of ['commands', 'received', 'sent'] as const) timings[step][kind] += all[kind] - 2 * reading[kind]
    timings[step].gateway += exactMicros(crowd.pid) - gateway
    timings[step].redis += (await microsOf(crowd.redis)) - redis
  }

  await timed('sign_in', async (latencies) => {
    for (const { sub } of people.slice(0, each)) latencies.push(await signIn(crowd, sub, timings.callback.latencies))
  })
  for (const step of ['cold', 'warm'] as const)
    await timed(step, async (latencies) => {
      for (const { id } of chosen) latencies.push(await ask(crowd, id, 200))
    })
  const tokens = await Promise.all(chosen.map((session) => crowd.provider.logoutToken(session)))
  await timed('logout', async (latencies) => {
    for (const token of tokens) latencies.push(await postLogoutToken(crowd, token))
  })
  for (const { id } of chosen) await ask(crowd, id, 401)
}

function between(before: Traffic, after: Traffic): Traffic {
  return {
    commands: after.commands - before.commands,
    received: after.received - before.received,
    sent: after.sent - before.sent,
  }
}

/** The time from the first request of a browser to the page after the sign-in, in ms. */
async function signIn({ url, provider }: Crowd, person: string, callbacks: number[]): Promise<number> {
  const browser = new Browser(person)
  const startedAt = performance.now()
  const callback = await browser.until(url + page, '/.gatehouse/callback')
  const calledAt = performance.now()
  await browser.send(callback)
  callbacks.push(performance.now() - calledAt)
  const visit = await browser.send(url + page)
  const ms = performance.now() - startedAt
  if (visit.status !== 200) throw new Error(`signing in ended at ${visit.url} with ${visit.status}`)
  // The provider drops its sessions without Logout Tokens, so that its memory does not grow.
  for (const { sid } of provider.sessions()) provider.expireSession(sid)
  return ms
}

/** The time of one request with a session, in ms. */
async function ask({ client }: Crowd, id: string, expected: number): Promise<number> {
  const startedAt = performance.now()
  const response = await client.request({ method: 'GET', path: page, headers: { cookie: `gatehouse=${id}` } })
  await response.body.dump()
  const ms = performance.now() - startedAt
  if (response.statusCode !== expected) throw new Error(`a request got ${response.statusCode}, and not ${expected}`)
  return ms
}

/** The time from a Logout Token to its 200, in ms. */
async function postLogoutToken({ client }: Pick<Crowd, 'client'>, logout_token: string): Promise<number> {
  const startedAt = performance.now()
  const response = await client.request({
    method: 'POST',
    path: '/.gatehouse/backchannel-logout',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ logout_token }).toString(),
  })
  await response.body.dump()
  const ms = performance.now() - startedAt
  if (response.statusCode !== 200) throw new Error(`a logout token got ${response.statusCode}`)
  return ms
}

/** Ends a tenth of the sessions, lets the others expire, and counts the remaining keys. */
async function disperse({ count, place, redis, figures }: Crowd): Promise<void> {
  figures['ended'] = (await order<number>({ kind: 'end', place })).reduce((sum, ended) => sum + ended, 0)

  figures['expired'] = await letExpire(redis, '*:s:*')
  // Keys that sign-ins and logouts create for some minutes.
  for (const pattern of ['*:t', '*:j:*', '*:o:*']) await letExpire(redis, pattern)
  const before = await memoryOf(redis)
  await letExpire(redis, '*')
  const left = (figures['keys left'] = await redis.dbsize())
  figures['bytes of an expired one'] = (before - (await memoryOf(redis))) / figures['expired']
  console.error(
    `${thousands(count)} sessions: left are ${left <= 20 ? (await redis.keys('*')).join(', ') : `${left} keys`}`,
  )
}

function report(): void {
  const { model = 'unknown processor' } = cpus()[0] ?? {}
  console.log(
    `${new Date().toISOString().slice(0, 10)}, Node.js ${process.version}, ${cpus().length} × ${model}, ` +
      `each step ${rounds * each} times, in ${rounds} rounds\n`,
  )
  const rows = [
    figureRow('of a session in Redis: its sealed record, bytes', 'record bytes'),
    figureRow('… all of it, bytes', 'bytes', 0),
    figureRow('… all of it, as resident memory, bytes', 'resident bytes', 0),
    figureRow('… keys', 'keys', 2),
    ...stepRows('a sign-in', 'sign_in'),
    ...latencyRows('… of it the callback', 'callback'),
    ...stepRows('a request, its session read from Redis', 'cold'),
    ...stepRows('a request, its session in memory', 'warm'),
    ...stepRows('a Logout Token until the 200', 'logout'),
    figureRow('sessions ended at last, one by one', 'ended'),
    figureRow('sessions that then expired for being idle', 'expired'),
    figureRow('… what is left of one until its absolute timeout, bytes', 'bytes of an expired one', 0),
    figureRow('keys left when all has expired', 'keys left'),
  ]
  console.log(table(['', ...crowds.map(({ count }) => `${thousands(count)} sessions`)], rows))
}

function stepRows(what: string, step: Step): string[][] {
  const perTime = (whose: Exclude<keyof Timing, 'latencies'>) => (crowd: Crowd) =>
    crowd.timings[step][whose] / crowd.timings[step].latencies.length
  return [
    ...latencyRows(what, step),
    besideFirst('… CPU µs of the gateway', 0, perTime('gateway')),
    besideFirst('… CPU µs of Redis', 0, perTime('redis')),
    besideFirst('… commands of Redis', 1, perTime('commands')),
    besideFirst('… bytes to Redis', 0, perTime('received')),
    besideFirst('… bytes from Redis', 0, perTime('sent')),
  ]
}

function latencyRows(what: string, step: Step): string[][] {
  return [0.5, 0.99].map((part, n) =>
    besideFirst(`${n === 0 ? what : '…'} p${part * 100} ms`, 2, ({ timings }) => {
      const sorted = timings[step].latencies.toSorted((a, b) => a - b)
      return sorted[Math.ceil(sorted.length * part) - 1] ?? NaN
    }),
  )
}

/** Formats a number. With digits, adds its ratio to the first number. */
function figureRow(what: string, figure: Figure, digits?: number): string[] {
  const of = ({ figures }: Crowd) => figures[figure] ?? NaN
  return digits === undefined ? [what, ...crowds.map((crowd) => thousands(of(crowd)))] : besideFirst(what, digits, of)
}

/** Formats numbers, each with its ratio to the first one. */
function besideFirst(what: string, digits: number, of: (crowd: Crowd) => number): string[] {
  const [first, ...others] = crowds.map(of) as [number, ...number[]]
  return [what, first.toFixed(digits), ...others.map((n) => `${n.toFixed(digits)} (× ${(n / first).toFixed(2)})`)]
}

function thousands(count: number): string {
  return count.toLocaleString('en-US')
}
