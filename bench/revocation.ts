// Measures how long a Logout Token takes to end a session on two gateways that share a Redis. `npm
// run bench:revocation`; see bench/README.md.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'
import { startDemoProvider } from '../examples/demo/provider.ts'
import { Browser } from '../test/support/browser.ts'
import { freePort } from '../test/support/free-port.ts'
import { readOptions } from '../test/support/options.ts'
import { startRedis, type RedisServer } from '../test/support/redis.ts'
import { openEventStream, openWebSocket } from '../test/support/streams.ts'
import { Asking } from './asking.ts'
import { startGateway, startServer } from './process.ts'

/** Two gateways with one `external_url`. Logout Tokens go to the first one. */
interface Pair {
  readonly urls: readonly [string, string]
  readonly signIn: () => Promise<{ readonly cookie: string; readonly logout_token: string }>
  readonly stop: () => Promise<void>
}

/** Times in ms since the Logout Token was sent. */
interface Round {
  /** When its 200 arrived. */
  readonly answered: number
  /** When the first client at the other gateway was denied, and when each client was. */
  readonly firstDenied: number
  readonly allDenied: number
  /** When the last stream was closed. */
  readonly lastClosed: number
  /** How many requests were sent after the 200 and admitted. */
  readonly admittedAfter: number
}

const values = readOptions('npm run bench:revocation', {
  rounds: { type: 'string', default: '200' },
  streams: { type: 'string', default: '32' },
  clients: { type: 'string', default: '4' },
})
const rounds = Number(values.rounds)
const streamCount = Number(values.streams)
const clientCount = Number(values.clients)
const warmUpRounds = 10

const over: (() => unknown)[] = []
const scope = { after: (tidy: () => unknown) => void over.push(tidy) }
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
scope.after(() => rmSync(folder, { recursive: true, force: true }))
const upstream = await startServer('lasting-upstream.ts')
const redis = await startRedis(scope)

const measured = new Map<string, Round[]>()
for (const workers of [1, 2]) {
  const pair = await startPair(redis, workers)
  const results: Round[] = []
  for (let round = -warmUpRounds; round < rounds; round += 1) {
    const result = await measure(pair)
    if (round >= 0) results.push(result)
  }
  measured.set(workers === 1 ? 'two gateways' : `two gateways with ${workers} workers each`, results)
  await pair.stop()
}
report()
for (const tidy of over.reverse()) await tidy()
process.exit()

async function startPair(redis: RedisServer, workers: number): Promise<Pair> {
  const [port, otherPort, providerPort] = [await freePort(), await freePort(), await freePort()]
  const [url, other] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${otherPort}`]
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
  })
  const pids: number[] = []
  for (const each of [port, otherPort]) {
    const file = join(folder, `${each}.yaml`)
    writeFileSync(
      file,
      `version: 1
listen: 127.0.0.1:${each}
external_url: ${url}
workers: ${workers}
log: { level: warn }
provider: { issuer: "${provider.issuer}", client_id: bench, client_secret: { env: CLIENT_SECRET } }
session:
  keys: [{ env: SESSION_KEY }]
  store: { redis: { url: "${redis.url}" } }
upstreams:
  application:
    url: ${upstream.url}
    headers: { X-Remote-User: sub }
`,
    )
    pids.push((await startGateway(file, env)).pid)
  }
  return {
    urls: [url, other],
    signIn: async () => {
      const browser = new Browser('jane')
      const visit = await browser.get(`${url}/`)
      if (visit.status !== 200) throw new Error(`signing in ended at ${visit.url} with ${visit.status}`)
      const [session] = provider.sessions()
      if (session === undefined) throw new Error('the provider knows of no session')
      const logout_token = await provider.logoutToken(session)
      // The provider drops the session without a Logout Token, so that the next session is the
      // first one again.
      provider.expireSession(session.sid)
      return { cookie: browser.cookieHeader, logout_token }
    },
    stop: async () => {
      for (const pid of pids) process.kill(pid, 'SIGTERM')
      await provider.close()
    },
  }
}

async function measure({ urls, signIn }: Pair): Promise<Round> {
  const { cookie, logout_token } = await signIn()
  const tidies: (() => unknown)[] = []
  const streams = await Promise.all(
    Array.from({ length: streamCount }, (_, index) => {
      // Each worker gets connections of both kinds, because a gateway distributes them in turn.
      const url = urls[index % 2] as string
      const within = { after: (tidy: () => unknown) => void tidies.push(tidy) }
      return index % 8 < 4
        ? openWebSocket(within, `${url}/ws`, cookie)
        : openEventStream(within, `${url}/events`, cookie)
    }),
  )
  const clients = Array.from({ length: clientCount }, () => new Asking(urls[1], cookie))
  await Promise.all(clients.map((client) => client.served()))

  const postedAt = performance.now()
  const response = await request(`${urls[0]}/.gatehouse/backchannel-logout`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ logout_token }).toString(),
  })
  const respondedAt = performance.now()
  await response.body.dump()
  if (response.statusCode !== 200) throw new Error(`the logout token got ${response.statusCode}`)

  const deniedAt = await Promise.all(clients.map((client) => client.denied))
  const closedAt = await Promise.all(streams.map(({ ended }) => ended))
  for (const tidy of tidies) tidy()
  await Promise.all(clients.map((client) => client.close()))
  return {
    answered: respondedAt - postedAt,
    firstDenied: Math.min(...deniedAt) - postedAt,
    allDenied: Math.max(...deniedAt) - postedAt,
    lastClosed: Math.max(...closedAt) - postedAt,
    admittedAfter: clients.filter(({ lastAdmittedSentAt }) => lastAdmittedSentAt > respondedAt).length,
  }
}

function report(): void {
  const { model = 'unknown processor' } = cpus()[0] ?? {}
  console.log(
    `${new Date().toISOString().slice(0, 10)}, Node.js ${process.version}, ${cpus().length} × ${model}, ` +
      `${rounds} sessions ended, each with ${streamCount} streams and ${clientCount} clients that ask again and again\n`,
  )
  console.log('| from the logout token to … | p50 ms | p99 ms | longest ms |')
  console.log('| --- | --: | --: | --: |')
  for (const [name, results] of measured) {
    const rows = [
      ['the 200', 'answered'],
      ['the first request denied at the other gateway', 'firstDenied'],
      ['every client denied there', 'allDenied'],
      [`the last of ${streamCount} streams closed`, 'lastClosed'],
    ] as const
    for (const [what, figure] of rows) {
      const sorted = results.map((round) => round[figure]).sort((a, b) => a - b)
      const at = (part: number) => (sorted[Math.ceil(sorted.length * part) - 1] ?? NaN).toFixed(1)
      console.log(`| ${name}: ${what} | ${at(0.5)} | ${at(0.99)} | ${at(1)} |`)
    }
  }
  const admitted = [...measured.values()].flat().reduce((sum, { admittedAfter }) => sum + admittedAfter, 0)
  console.log(`\nRequests that were sent after the 200 and admitted all the same: ${admitted}`)
}
