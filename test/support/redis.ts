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

/**
 * A test context, or anything else that knows when it is over: `{ after }` of node:test stands for
 * a whole file.
 */
export interface Scope {
  after(over: () => unknown): void
}

export interface RedisOptions {
  readonly password?: string
  /** Further arguments of `redis-server`, an ACL user or TLS for example. */
  readonly args?: readonly string[]
  /** Tried in place of a free one. */
  readonly port?: number
  /** Then nobody is let in without TLS and a certificate. */
  readonly tls?: RedisTls
  /** Lines of configuration: it is a Sentinel. */
  readonly sentinel?: readonly string[]
  /** Files that are there when it starts, by name. */
  readonly files?: Readonly<Record<string, string>>
}

/** What a Redis shows to those who connect, and whom it trusts: files in PEM. */
export interface RedisTls {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export interface RedisServer {
  readonly url: string
  readonly port: number
  /** Dies at once, as in a crash. */
  kill(): Promise<void>
  /** Hangs: connections stay open and nothing is answered. */
  freeze(): void
  resume(): void
  /** Starts empty, on the same port. */
  restart(): Promise<void>
}

const running = new Set<ChildProcess>()
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')))

/** A Redis of one's own, empty, without persistence, killed when the test is over. */
export async function startRedis(scope: Scope, options: RedisOptions = {}): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-redis-'))
  const port = options.port ?? (await freePort())
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(dir, name), text)
  let child = await launch(port, dir, options)
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  scope.after(async () => {
    await kill()
    rmSync(dir, { recursive: true, force: true })
  })
  return {
    url: `${options.tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`,
    port,
    kill,
    freeze: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    restart: async () => {
      await kill()
      child = await launch(port, dir, options)
    },
  }
}

function argumentsOf(port: number, dir: string, { password, tls, sentinel, args = [] }: RedisOptions): string[] {
  const place = [...portOf(port, tls), '--bind', '127.0.0.1', '--dir', dir]
  // A Sentinel writes what it learns into the file, and begins anew each time it is started here.
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

async function launch(port: number, dir: string, options: RedisOptions): Promise<ChildProcess> {
  const child = spawn('redis-server', argumentsOf(port, dir, options), { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  running.add(child)
  child.once('exit', () => running.delete(child))
  const startedAt = Date.now()
  while (!(await answers(port, options.tls))) {
    if (child.exitCode !== null) throw new Error(`redis-server did not start: ${output}`)
    if (Date.now() - startedAt > 10_000) throw new Error(`redis-server did not answer within 10 s: ${output}`)
  }
  return child
}

/** How to connect to a server with TLS, for `node:tls` and ioredis. */
export function tlsOf({ ca, cert, key }: RedisTls) {
  return { ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(key) }
}

/** Whether a server on this port answers, be it with a refusal. */
async function answers(port: number, tls: RedisTls | undefined): Promise<boolean> {
  const socket = tls ? connectTls({ port, host: '127.0.0.1', ...tlsOf(tls) }) : connect(port, '127.0.0.1')
  // It may come when the time is up already.
  socket.on('error', () => {})
  try {
    socket.write('PING\r\n')
    const [answer] = (await once(socket, 'data', { signal: AbortSignal.timeout(1_000) })) as [Buffer]
    return /^[+-](PONG|NOAUTH|DENIED|MASTERDOWN)/.test(answer.toString())
  } catch {
    // Not yet: give the server's process its turn before the next attempt.
    await new Promise((resolve) => setTimeout(resolve, 5))
    return false
  } finally {
    socket.destroy()
  }
}

/** From now on its replicas hear nothing of it; those who are connected are served as before. */
export async function cutOff({ port }: RedisServer): Promise<void> {
  const admin = new Redis(port, '127.0.0.1')
  await admin.config('SET', 'requirepass', 'which no replica knows')
  await admin.call('CLIENT', 'KILL', 'TYPE', 'replica')
  admin.disconnect()
}

/**
 * Every command that a Redis gets while `work` is done, those of scripts too: its name, in small
 * letters, and its arguments.
 */
export async function commandsDuring({ port }: RedisServer, work: () => Promise<unknown>): Promise<string[][]> {
  // The monitor of ioredis fails when what is seen first comes together with the answer to MONITOR.
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
      // How long the answer is that comes last.
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
 * How often a Redis got which command since it was started, those of scripts too, by its name in
 * small letters.
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
