// Measures how a flood of requests affects signed-in people: `npm run bench:flood`. See
// bench/README.md.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Pool } from 'undici'
import { startDemoProvider } from '../examples/demo/provider.ts'
import { Browser } from '../test/support/browser.ts'
import { freePort } from '../test/support/free-port.ts'
import { readOptions } from '../test/support/options.ts'
import { startRedis } from '../test/support/redis.ts'
import { measureHeld } from './held.ts'
import { builtGateway, start, startProgram, startServer, untilListening } from './process.ts'

const values = readOptions('npm run bench:flood', {
  seconds: { type: 'string', default: '5' },
  rate: { type: 'string', default: '200' },
  only: { type: 'string', default: '' },
  memory: { type: 'string' },
  workers: { type: 'string', default: '1,2' },
  listen: { type: 'string', default: 'http,https,http-node,https-node' },
  connections: { type: 'string', default: '9000' },
  addresses: { type: 'string', default: '5' },
  node: { type: 'string', default: process.execPath },
})
const [seconds, rate] = [Number(values.seconds), Number(values.rate)]

/** The kind of a flood, and its number of connections. */
const floods: readonly (readonly [kind: string, connections: number])[] = [
  ['nothing', 0],
  ['pages of the signed-in', 64],
  ['pages of strangers', 64],
  ['cookies without a session', 64],
  ['sign-ins begun', 64],
  ['callbacks made up', 64],
  ['logout tokens made up', 64],
  ['malformed requests', 64],
  ['heads of 64 KiB', 16],
  ['connections and nothing else', 64],
  ['heads that never end', 4000],
]

interface Served {
  readonly sent: number
  readonly served: number
  readonly p50: number
  readonly p99: number
  readonly longest: number
}

const over: (() => unknown)[] = []
const scope = { after: (tidy: () => unknown) => void over.push(tidy) }
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
scope.after(() => rmSync(folder, { recursive: true, force: true }))

// The gateway runs alone on the first processor. All other processes run on the second one.
execFileSync('taskset', ['-a', '-p', '-c', '1', String(process.pid)], { stdio: 'ignore' })
if (values.memory !== undefined) {
  const [memory, workers] = [values.memory, values.workers].map((text) => text.split(',').map(Number))
  const { only, node } = values
  const [connections, addresses] = [Number(values.connections), Number(values.addresses)]
  await measureHeld({
    ...{ memory: memory ?? [], workers: workers ?? [], listen: values.listen.split(',') },
    ...{ only, node, connections, addresses, scope, folder },
  })
  for (const tidy of over.reverse()) await tidy()
  process.exit()
}
const { url, port, cookie } = await startEverything()
await serve(2)
const rows: string[] = []
let alone: Served | undefined
for (const [kind, connections] of floods) {
  if (values.only !== '' && kind !== 'nothing' && !kind.includes(values.only)) continue
  const [served, responses] = await during(kind, connections, () => serve(seconds))
  alone ??= served
  rows.push(row(kind, connections, served, alone, responses))
}
print()
for (const tidy of over.reverse()) await tidy()
process.exit()

async function startEverything() {
  const [port, providerPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const env = { CLIENT_SECRET: 'correct horse battery staple', SESSION_KEY: Buffer.alloc(32, 1).toString('base64') }
  await startDemoProvider({
    host: '127.0.0.1',
    port: providerPort,
    issuer: new URL(`http://127.0.0.1:${providerPort}`),
    client_id: 'bench',
    client_secret: env.CLIENT_SECRET,
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
  })
  const redis = await startRedis(scope)
  const upstream = await startServer('upstream.ts')
  const file = join(folder, 'gateway.yaml')
  writeFileSync(
    file,
    `version: 1
listen: 127.0.0.1:${port}
external_url: ${url}
provider: { issuer: "http://127.0.0.1:${providerPort}", client_id: bench, client_secret: { env: CLIENT_SECRET } }
session: { keys: [{ env: SESSION_KEY }], store: { redis: { url: "${redis.url}" } } }
limits: { per_client: { connections: 100000 } }
upstreams: { bench: { url: "${upstream.url}", headers: { X-Remote-User: sub } } }
`,
  )
  const args = [builtGateway, 'run', '--config', file]
  const logFile = join(folder, 'gateway.log')
  const gateway = startProgram({ command: process.execPath, args, cpus: '0', env, logFile })
  scope.after(() => gateway.stop())
  await untilListening(port)
  const browser = new Browser('jane')
  await browser.get(`${url}/bytes/1024`)
  const cookie = browser.cookies.get('gatehouse')?.value
  if (cookie === undefined) throw new Error('the sign-in set no cookie')
  return { url, port, cookie }
}

async function during<T>(
  kind: string,
  connections: number,
  work: () => Promise<T>,
): Promise<[T, Record<string, number>]> {
  if (connections === 0) return [await work(), {}]
  const flood = start('flooding.ts', [String(port), kind, String(connections), cookie])
  await once(flood, 'message')
  await wait(1000)
  const result = await work()
  flood.send('stop')
  const [responses] = (await once(flood, 'message')) as [Record<string, number>]
  await once(flood, 'exit')
  await wait(500)
  return [result, responses]
}

/** Sends requests of a signed-in person at a steady rate, without waiting for earlier responses. */
async function serve(forSeconds: number): Promise<Served> {
  const pool = new Pool(url, { connections: 16, pipelining: 1 })
  const taken: number[] = []
  const asked: Promise<void>[] = []
  const startedAt = performance.now()
  for (let number = 0; number < forSeconds * rate; number += 1) {
    const dueAt = startedAt + (number * 1000) / rate
    await wait(Math.max(0, dueAt - performance.now()))
    asked.push(
      pool
        .request({ method: 'GET', path: '/bytes/1024', headers: { cookie: `gatehouse=${cookie}` } })
        .then(async ({ statusCode, body }) => {
          await body.dump()
          // Measured from the time at which the request was due, so that a late request counts as
          // waiting.
          if (statusCode === 200) taken.push(performance.now() - dueAt)
        })
        .catch(() => {}),
    )
  }
  await Promise.all(asked)
  await pool.destroy()
  taken.sort((one, other) => one - other)
  const at = (share: number) => taken[Math.min(taken.length - 1, Math.floor(share * taken.length))] ?? NaN
  return { sent: asked.length, served: taken.length, p50: at(0.5), p99: at(0.99), longest: at(1) }
}

function row(
  kind: string,
  connections: number,
  served: Served,
  alone: Served,
  responses: Record<string, number>,
): string {
  const perSecond = Object.entries(responses)
    .map(([status, count]) => `${status}: ${Math.round(count / (seconds + 1)).toLocaleString('en')}/s`)
    .join(', ')
  const ms = (value: number) => value.toFixed(1)
  const ratio = (served.p50 / alone.p50).toFixed(1)
  const share = `${served.served} of ${served.sent}`
  return `| ${[kind, connections || '', perSecond, share, ms(served.p50), ms(served.p99), ms(served.longest), ratio].join(' | ')} |`
}

function print(): void {
  const { model = 'unknown' } = cpus()[0] ?? {}
  console.log(
    `Node.js ${process.version}, ${cpus().length} × ${model}; ${rate} requests a second of somebody signed in\n`,
  )
  console.log(
    '| flood of | connections | answered | signed-in served | p50 ms | p99 ms | longest ms | p50 beside none |',
  )
  console.log('| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |')
  console.log(rows.join('\n'))
}
