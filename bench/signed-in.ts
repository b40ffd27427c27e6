// What a signed-in request costs on its way through the gateway, beside the same request without one, and beside proxies that
// know nothing of sign-in. `npm run bench`; how to read it: bench/README.md.
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startDemoProvider } from '../src/demo/provider.ts'
import { Browser } from '../test/support/browser.ts'
import { freePort, startRedis } from '../test/support/redis.ts'
import type { LoadOrder, LoadResult } from './load.ts'
import { cpuMicros, start, startGateway, startServer } from './process.ts'

interface Target {
  readonly name: string
  readonly pid: number
  readonly url: string
  readonly path: string
  readonly cookie: string
}

interface Round extends LoadResult {
  readonly cpuPerRequest: number
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    connections: { type: 'string', default: '32' },
  },
})
const rounds = Number(values.rounds)
const seconds = Number(values.seconds)
const connections = Number(values.connections)

const over: (() => unknown)[] = []
const scope = { after: (tidy: () => unknown) => void over.push(tidy) }
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
scope.after(() => rmSync(folder, { recursive: true, force: true }))

const upstream = await startServer('upstream.ts')
const redis = await startRedis(scope)
const direct = { name: 'the application itself', ...upstream, path: '/page', cookie: '' }
const inMemory = await signedIn('Gatehouse, signed in, memory store', 'memory')
const targets: Target[] = [
  direct,
  inMemory,
  await signedIn('Gatehouse, signed in, Redis store', `{ redis: { url: "${redis.url}" } }`),
  { ...inMemory, name: 'Gatehouse, a public path', path: '/public/page', cookie: '' },
  await plain('http-proxy', 'keep-alive'),
  await plain('http-proxy'),
  await plain('@fastify/http-proxy'),
]
const clients = start('load.ts')

const measured = new Map<Target, Round[]>(targets.map((target) => [target, []]))
for (const target of targets) await measure(target, 1000)
for (let round = 0; round < rounds; round += 1)
  for (const target of targets) measured.get(target)?.push(await measure(target, seconds * 1000))

report()
for (const tidy of over.reverse()) await tidy()
process.exit()

/** A gateway with one worker, eight identity headers and a person signed in. */
async function signedIn(name: string, store: string): Promise<Target> {
  const [url, port] = [`http://127.0.0.1:${await freePort()}`, await freePort()]
  const env = { CLIENT_SECRET: 'correct horse battery staple', SESSION_KEY: Buffer.alloc(32, 1).toString('base64') }
  const provider = await startDemoProvider({
    host: '127.0.0.1',
    port,
    issuer: new URL(`http://127.0.0.1:${port}`),
    client_id: 'bench',
    client_secret: env.CLIENT_SECRET,
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
  })
  scope.after(() => provider.close())
  const file = join(folder, `${name.replaceAll(/\W+/g, '-')}.yaml`)
  writeFileSync(file, yaml(url, provider.issuer, store))
  const { pid } = await startGateway(file, env)
  const browser = new Browser('jane')
  const visit = await browser.get(`${url}/`)
  if (visit.status !== 200) throw new Error(`signing in ended at ${visit.url} with ${visit.status}`)
  return { name, pid, url, path: '/page', cookie: browser.cookieHeader }
}

function yaml(url: string, issuer: string, store: string): string {
  return `version: 1
listen: ${url.slice('http://'.length)}
external_url: ${url}
provider:
  issuer: ${issuer}
  client_id: bench
  client_secret: { env: CLIENT_SECRET }
  claims: { fields: https://id.example.com/claims/fields }
session:
  keys: [{ env: SESSION_KEY }]
  store: ${store}
upstreams:
  application:
    url: ${upstream.url}
    headers:
      X-Remote-User: sub
      X-Name: "{given_name} {family_name}"
      X-Given-Name: given_name
      X-Family-Name: family_name
      X-Email: email
      X-Cost-Centre: fields.costCentre
      X-First-Group: fields.groups[0]
      X-Groups: { claim: fields.groups, join: ",", encode: percent }
    rules: [{ path: /public/*, access: public }]
`
}

async function plain(name: string, ...options: readonly string[]): Promise<Target> {
  const server = await startServer('contender.ts', [name, upstream.url, ...options])
  return { name: [name, ...options, 'no sign-in'].join(', '), ...server, path: '/page', cookie: '' }
}

async function measure({ name, pid, url, path, cookie }: Target, ms: number): Promise<Round> {
  const before = cpuMicros(pid)
  const order: LoadOrder = { url: url + path, cookie, connections, ms }
  clients.send(order)
  const [result] = (await once(clients, 'message')) as [LoadResult]
  if (result.failures > 0) throw new Error(`${name}: ${result.failures} requests failed`)
  return { ...result, cpuPerRequest: (cpuMicros(pid) - before) / result.requests }
}

function report(): void {
  const rate = (round: Round) => round.requests / round.seconds
  const directRate = median(direct, rate)
  const { model = 'unknown processor' } = cpus()[0] ?? {}
  console.log(
    `${new Date().toISOString().slice(0, 10)}, Node.js ${process.version}, ${cpus().length} × ${model}, ` +
      `${connections} connections, medians of ${rounds} rounds of ${seconds} s\n`,
  )
  console.log('| | requests/s | of direct | p50 ms | p99 ms | CPU µs/request |')
  console.log('| --- | --: | --: | --: | --: | --: |')
  for (const target of targets) {
    const cells = [
      median(target, rate).toFixed(0),
      `${((100 * median(target, rate)) / directRate).toFixed(0)} %`,
      median(target, ({ p50 }) => p50).toFixed(2),
      median(target, ({ p99 }) => p99).toFixed(2),
      median(target, ({ cpuPerRequest }) => cpuPerRequest).toFixed(0),
    ]
    console.log(`| ${target.name} | ${cells.join(' | ')} |`)
  }
}

function median(target: Target, of: (round: Round) => number): number {
  const values = (measured.get(target) ?? []).map(of).sort((a, b) => a - b)
  return values[Math.floor(values.length / 2)] ?? NaN
}
