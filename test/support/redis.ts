import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { connect as connectTls } from 'node:tls'
import { Redis } from 'ioredis'
import { freePort } from './free-port.ts'

/** A test context, or any object with `after`. `{ after }` of node:test is that of a whole file. */
export interface Scope {
  after(over: () => unknown): void
}

export interface RedisOptions {
  readonly password?: string
  /** Further arguments of `redis-server`, an ACL user or TLS for example. */
  readonly args?: readonly string[]
  /** The port to try first, instead of a free one. */
  readonly port?: number
  /** Requires TLS and a client certificate. */
  readonly tls?: RedisTls
  /** Lines of configuration. The server is a Sentinel. */
  readonly sentinel?: readonly string[]
  /** Files that exist at the start, by name. */
  readonly files?: Readonly<Record<string, string>>
}

/** The certificate of a Redis server, and the authority that it trusts: files in PEM. */
export interface RedisTls {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export interface RedisServer {
  readonly url: string
  readonly port: number
  /** The end of the output of a server that has ended. `undefined`: the server runs. */
  outputAfterEnd(): string | undefined
  /** Kills the server at once, as a crash does. */
  kill(): Promise<void>
  /** Suspends the server: connections stay open, and no command gets a reply. */
  freeze(): void
  resume(): void
  /** Starts an empty server on the same port. */
  restart(): Promise<void>
}

const running = new Set<ChildProcess>()
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')))

/** Starts an empty Redis without persistence, and kills it when the test ends. */
export async function startRedis(scope: Scope, options: RedisOptions = {}): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-redis-'))
  const port = options.port ?? (await freePort())
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(dir, name), text)
  let output = ''
  const keep = (text: string) => (output = (output + text).slice(-2_000))
  let child = await launch(port, dir, options, keep)
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const kill = async () => {
    if (hasEnded()) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  scope.after(async () => {
    await kill()
    // A child of Redis that rewrites its append-only file may still write.
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
  })
  return {
    url: `${options.tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`,
    port,
    outputAfterEnd: () => (hasEnded() ? output : undefined),
    kill,
    freeze: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    restart: async () => {
      await kill()
      child = await launch(port, dir, options, keep)
    },
  }
}

function argumentsOf(port: number, dir: string, { password, tls, sentinel, args = [] }: RedisOptions): string[] {
  const place = [...portOf(port, tls), '--bind', '127.0.0.1', '--dir', dir]
  // A Sentinel writes its state into the file, and starts here with a new file each time.
  if (sentinel !== undefined) {
    const file = join(dir, 'sentinel.conf')
    writeFileSync(file, `${sentinel.join('\n')}\n`)
    return [file, '--sentinel', ...place, ...args]
  }
  const secret = password === undefined ? [] : ['--requirepass', password]
  return [...place, '--save', '', '--appendonly', 'no', ...secret, ...args]
}

function portOf(port: number, tls: RedisTls | undefined): readonly string[] {
  if (tls === undefined) return ['--port', String(port)]
  const files = ['--tls-cert-file', tls.cert, '--tls-key-file', tls.key, '--tls-ca-cert-file', tls.ca]
  return ['--port', '0', '--tls-port', String(port), ...files, '--tls-replication', 'yes', '--tls-cluster', 'yes']
}

async function launch(
  port: number,
  dir: string,
  options: RedisOptions,
  /** Adds to what the server wrote, and returns it. */
  keep: (text: string) => string,
): Promise<ChildProcess> {
  const child = spawn(process.env['REDIS_SERVER'] ?? 'redis-server', argumentsOf(port, dir, options), {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => keep(String(chunk)))
  running.add(child)
  child.once('exit', () => running.delete(child))
  const startedAt = Date.now()
  while (!(await responds(port, options.tls))) {
    if (child.exitCode !== null) throw new Error(`redis-server did not start: ${keep('')}`)
    if (Date.now() - startedAt > 10_000) throw new Error(`redis-server did not answer within 10 s: ${keep('')}`)
  }
  return child
}

/** How to connect to a server with TLS, for `node:tls` and ioredis. */
export function tlsOf({ ca, cert, key }: RedisTls) {
  return { ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(key) }
}

/** Whether a server on this port replies, even with an error. */
async function responds(port: number, tls: RedisTls | undefined): Promise<boolean> {
  const socket = tls ? connectTls({ port, host: '127.0.0.1', ...tlsOf(tls) }) : connect(port, '127.0.0.1')
  // The reply may arrive just when the time is over.
  socket.on('error', () => {})
  try {
    socket.write('PING\r\n')
    const [response] = (await once(socket, 'data', { signal: AbortSignal.timeout(1_000) })) as [Buffer]
    return /^[+-](PONG|NOAUTH|DENIED|MASTERDOWN)/.test(response.toString())
  } catch {
    // Gives the server process time to run before the next attempt.
    await new Promise((resolve) => setTimeout(resolve, 5))
    return false
  } finally {
    socket.destroy()
  }
}

/** Cuts the replicas off. Clients that are connected are served as before. */
export async function cutOff({ port }: RedisServer): Promise<void> {
  const admin = new Redis(port, '127.0.0.1')
  await admin.config('SET', 'requirepass', 'which no replica knows')
  await admin.call('CLIENT', 'KILL', 'TYPE', 'replica')
  admin.disconnect()
}

/**
 * Records every command that a Redis gets during `work`, also those of scripts: its name in lower
 * case, and its arguments.
 */
export async function commandsDuring({ port }: RedisServer, work: () => Promise<unknown>): Promise<string[][]> {
  // The monitor of ioredis fails if the first command arrives together with the reply to MONITOR.
  const monitor = connect(port, '127.0.0.1')
  const lines = createInterface({ input: monitor })[Symbol.asyncIterator]()
  const next = async () => {
    const { done, value } = await lines.next()
    return done === true ? assert.fail('the Redis that is watched has gone') : value
  }
  try {
    monitor.write('MONITOR\r\n')
    for (let line = await next(); line !== '+OK'; line = await next());
    await work()
    const last = randomUUID()
    monitor.write(`ECHO ${last}\r\n`)
    const seen: string[][] = []
    for (let line = await next(); !line.includes(last); line = await next()) {
      // The length of the reply that follows.
      if (line.startsWith('$')) continue
      const [, words = ''] = /^\+[\d.]+ \[[^\]]*\] "(.*)"$/.exec(line) ?? assert.fail(line)
      const [name = '', ...args] = words.split('" "').map((word) => word.replaceAll('\\"', '"'))
      seen.push([name.toLowerCase(), ...args])
    }
    return seen
  } finally {
    monitor.destroy()
  }
}

/**
 * Counts the commands that a Redis got since its start, also those of scripts, by name in lower
 * case.
 */
export async function commandsSinceStart({ port }: RedisServer): Promise<ReadonlyMap<string, number>> {
  const redis = new Redis(port, '127.0.0.1')
  try {
    const lines = (await redis.info('commandstats')).matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)
    return new Map([...lines].map(([, name = '', calls]) => [name, Number(calls)]))
  } finally {
    redis.disconnect()
  }
}
