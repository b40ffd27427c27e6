// Measures how much memory floods make the gateway hold: `npm run bench:flood -- --memory 512,128`.
// See bench/README.md.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { request as httpRequest, createServer } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { startDemoProvider } from '../examples/demo/provider.ts'
import { Browser } from '../test/support/browser.ts'
import { issueCertificates } from '../test/support/certificates.ts'
import { freePort } from '../test/support/free-port.ts'
import { imageFlags, imageVariables } from '../test/support/image.ts'
import { startRedis } from '../test/support/redis.ts'
import { holdingKinds, type HoldingFlood } from './holding.ts'
import { builtGateway, start, startProgram, untilListening } from './process.ts'

export interface HeldOptions {
  /** Memory limits of the gateway, in MiB. */
  readonly memory: readonly number[]
  readonly workers: readonly number[]
  /**
   * The `listen` of the gateway: `http`, `https`, `http-node`, `https-node` (`plain_path: false`).
   */
  readonly listen: readonly string[]
  readonly only: string
  readonly connections: number
  readonly addresses: number
  readonly node: string
  readonly scope: { after(tidy: () => unknown): void }
  readonly folder: string
}

const clientSecret = 'correct horse battery staple'
const sampleMs = 20
/** A flood that opens its connections more slowly is measured with those that it has opened. */
const longestBeginMs = 12_000

export async function measureHeld(options: HeldOptions): Promise<void> {
  console.log(
    '| MiB | workers | listen | flood of | opened | closed | responses | peak MiB | idle MiB | held MiB | signed-in served | longest ms | Logout Tokens | ran % | waited % | |',
  )
  console.log(
    '| ---: | ---: | --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |',
  )
  for (const memory of options.memory)
    for (const workers of options.workers)
      for (const listen of options.listen)
        for (const kind of holdingKinds)
          if (kind.includes(options.only)) await measure(kind, memory, workers, listen, options)
}

async function measure(kind: string, memory: number, workers: number, listen: string, options: HeldOptions) {
  const over: (() => unknown)[] = []
  const scope = { after: (tidy: () => unknown) => void over.push(tidy) }
  try {
    const gateway = await startGateway(memory, workers, listen, { ...options, scope })
    await wait(500)
    const idle = gateway.anonymous()
    let peak = 0
    const sampling = setInterval(() => (peak = Math.max(peak, gateway.anonymous())), sampleMs)
    let held: readonly number[] = [0, 0]
    const sample = async () => {
      const now = await gateway.held()
      if ((now[0] ?? 0) > (held[0] ?? 0)) held = now
    }
    const asking = setInterval(() => void sample().catch(() => {}), 100)
    const isTls = listen.startsWith('https')
    const { connections, addresses } = options
    const order: HoldingFlood = { kind, port: gateway.port, isTls, connections, addresses }
    const flood = start('holding.ts', [JSON.stringify(order)])
    // The person shares a processor with the flood, and must not wait for it.
    setPriority(flood.pid ?? 0, 19)
    let isOver = false
    const person = serve(gateway.url, gateway.cookie, () => isOver)
    const tokens = sendTokens(gateway.url, () => isOver)
    await Promise.race([once(flood, 'message'), wait(longestBeginMs)])
    const before = gateway.processor()
    await wait(6000)
    const shares = gateway.processor().map((total, at) => ((total - (before[at] ?? 0)) / 6000) * 100)
    isOver = true
    const [served, answered] = await Promise.all([person, tokens])
    clearInterval(sampling)
    clearInterval(asking)
    flood.send('stop')
    const { opened, closed, statuses } = await countsOf(flood)
    const texts = Object.entries(statuses).map(([status, count]) => `${status}: ${count}`)
    const ended = gateway.ended()
    console.log(
      `| ${[memory, workers, listen, kind, opened, closed, texts.join(', '), peak.toFixed(0), idle.toFixed(0), held.map((bytes) => (bytes / 2 ** 20).toFixed(0)).join(' of '), `${served.served} of ${served.sent}`, served.longest.toFixed(0), `${answered.served} of ${answered.sent}`, ...shares.map((share) => share.toFixed(0)), ended].join(' | ')} |`,
    )
  } finally {
    for (const tidy of over.reverse()) await tidy()
  }
}

async function startGateway(memory: number, workers: number, listen: string, { scope, folder, node }: HeldOptions) {
  const [port, providerPort, adminPort] = [await freePort(), await freePort(), await freePort()]
  const isTls = listen.startsWith('https')
  const url = `${isTls ? 'https' : 'http'}://127.0.0.1:${port}`
  const issuer = `http://127.0.0.1:${providerPort}`
  const provider = await startDemoProvider({
    ...{
      host: '127.0.0.1',
      port: providerPort,
      issuer: new URL(issuer),
      client_id: 'bench',
      client_secret: clientSecret,
    },
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
  })
  scope.after(() => provider.close())
  const redis = await startRedis(scope)
  const upstream = await startUpstream(scope)
  const { cert, key } = issueCertificates().server
  const tls = isTls ? `, tls: { cert_file: "${cert}", key_file: "${key}" }` : ''
  const file = join(folder, `gateway-${port}.yaml`)
  writeFileSync(
    file,
    `version: 1
listen: { address: "127.0.0.1:${port}", plain_path: ${!listen.endsWith('-node')}${tls} }
external_url: ${url}
workers: ${workers}
provider: { issuer: "${issuer}", client_id: bench, client_secret: { env: CLIENT_SECRET } }
session: { keys: [{ env: SESSION_KEY }], store: { redis: { url: "${redis.url}" } } }
log: { access: false }
admin: { listen: "127.0.0.1:${adminPort}" }
upstreams:
  bench:
    url: "${upstream}"
    rules: [{ path: /private, access: signed_in }, { path: /*, access: public }]
    headers: { X-Remote-User: sub }
`,
  )
  const logFile = join(folder, `gateway-${port}.log`)
  const group = controlGroup(memory, scope)
  const command = ['-c', `${group.enter}exec "$0" "$@"`, node, ...imageFlags, builtGateway, 'run', '--config', file]
  const env = { CLIENT_SECRET: clientSecret, SESSION_KEY: Buffer.alloc(32, 1).toString('base64'), ...imageVariables }
  const running = startProgram({ command: 'sh', args: command, cpus: '0', env, logFile })
  scope.after(() => running.stop())
  await untilListening(port).catch((error: unknown) => {
    throw new Error(readFileSync(logFile, 'utf8'), { cause: error })
  })
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  const browser = new Browser('jane')
  await browser.get(`${url}/private`)
  const cookie = browser.cookieHeader
  if (!cookie.includes('gatehouse')) throw new Error('the sign-in set no cookie')
  const died = () =>
    /JavaScript heap out of memory|worker\.(?:died|exited|failed)[^\n]{0,80}/.exec(readFileSync(logFile, 'utf8'))?.[0]
  const isRunning = () => existsSync(`/proc/${running.pid}`)
  return {
    ...{ port, url, cookie },
    processor: () => sums(group.pids().map(processorOf)),
    anonymous: () => group.pids().reduce((sum, pid) => sum + anonymousOf(pid), 0),
    held: async () => {
      const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
      const valueOf = (name: string) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1] ?? 0)
      return [valueOf('gatehouse_buffered_bytes'), valueOf('gatehouse_buffered_bytes_limit')]
    },
    ended: () => (isRunning() ? '' : 'ENDED ') + (died() ?? ''),
  }
}

/** Limits the memory of the processes that enter it. Needs root. */
function controlGroup(memory: number, scope: HeldOptions['scope']) {
  const root = '/sys/fs/cgroup'
  const isV2 = existsSync(`${root}/cgroup.controllers`)
  const path = `${isV2 ? root : `${root}/memory`}/gatehouse-bench-${process.pid}-${memory}-${Math.round(performance.now())}`
  mkdirSync(path)
  writeFileSync(`${path}/${isV2 ? 'memory.max' : 'memory.limit_in_bytes'}`, String(memory * 1024 * 1024))
  scope.after(async () => {
    for (let times = 0; times < 100; times += 1) {
      try {
        return rmdirSync(path)
      } catch {
        await wait(50)
      }
    }
  })
  const pids = () => {
    try {
      return readFileSync(`${path}/cgroup.procs`, 'utf8').split('\n').filter(Boolean).map(Number)
    } catch {
      return []
    }
  }
  return { enter: `echo $$ > ${path}/cgroup.procs; `, pids }
}

/** The resident memory of a process that is not a copy of a file, in MiB. */
function anonymousOf(pid: number): number {
  try {
    return Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

/**
 * How long the main thread of a process has run, and how long it has waited for a processor that
 * others used, in ms. On a quiet machine it hardly waits.
 */
function processorOf(pid: number): readonly [ran: number, waited: number] {
  try {
    const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ').map(Number)
    return [ran / 1e6, waited / 1e6]
  } catch {
    return [0, 0]
  }
}

function sums(pairs: readonly (readonly [number, number])[]): readonly [number, number] {
  return pairs.reduce(([ran, waited], [one, other]) => [ran + one, waited + other], [0, 0])
}

/** `/slow` gets no response, and no content of `/unread` is read. */
async function startUpstream(scope: HeldOptions['scope']): Promise<string> {
  const large = Buffer.alloc(10 * 1024 * 1024, 'x')
  const server = createServer({ maxHeaderSize: 64 * 1024 }, (req, res) => {
    if (req.url === '/slow') return void req.resume()
    if (req.url === '/unread') return
    req.resume()
    res.end(req.url === '/large' ? large : 'here')
  })
  server.on('upgrade', (_, socket) => socket.on('error', () => {}))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

interface Counts {
  readonly opened: number
  readonly closed: number
  readonly statuses: Record<string, number>
}

/** What a flood sends when it is stopped. Before that, it says once that it has begun. */
async function countsOf(flood: ChildProcess): Promise<Counts> {
  for (;;) {
    const [message] = (await once(flood, 'message')) as [Counts | 'begun']
    if (message !== 'begun') return message
  }
}

interface Served {
  sent: number
  served: number
  longest: number
}

/** A signed-in person requests a page again and again, on new connections. */
function serve(url: string, cookie: string, isOver: () => boolean): Promise<Served> {
  return repeat(isOver, () => statusOf(`${url}/private`, { headers: { cookie } }), 200)
}

/** Sends Logout Tokens, which are not valid: each must get its response. */
function sendTokens(url: string, isOver: () => boolean): Promise<Served> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const token = `${Buffer.from('{"alg":"RS256","kid":"x"}').toString('base64url')}.e30.${'A'.repeat(342)}`
  return repeat(
    isOver,
    () => statusOf(`${url}/.gatehouse/backchannel-logout`, { method: 'POST', headers, body: `logout_token=${token}` }),
    400,
  )
}

async function repeat(isOver: () => boolean, send: () => Promise<number>, expected: number): Promise<Served> {
  const result = { sent: 0, served: 0, longest: 0 }
  while (!isOver()) {
    const startedAt = performance.now()
    const status = await send()
    result.sent += 1
    if (status === expected) result.served += 1
    result.longest = Math.max(result.longest, performance.now() - startedAt)
    await wait(100)
  }
  return result
}

function statusOf(
  url: string,
  { method = 'GET', headers, body }: { method?: string; headers: Record<string, string>; body?: string },
): Promise<number> {
  return new Promise((resolve) => {
    const options = { method, headers, agent: false, localAddress: '127.200.0.1', rejectUnauthorized: false }
    const sent = (url.startsWith('https') ? httpsRequest : httpRequest)(url, options, (response) => {
      response.resume().once('close', () => resolve(response.statusCode ?? 0))
    })
    sent.setTimeout(5000, () => sent.destroy())
    sent.once('error', () => resolve(0)).end(body)
  })
}
