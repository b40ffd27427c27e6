// One replica of the gateway: the built program with its workers, run as the image does.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { childrenOf, isAlive, root } from '../test/support/command.ts'
import { freePort } from '../test/support/free-port.ts'
import { imageFlags, imageVariables } from '../test/support/image.ts'
import { until } from '../test/support/until.ts'
import { type HistoryEvent, now } from './history.ts'
import type { Network } from './network.ts'

export interface ReplicaParts {
  readonly name: string
  readonly folder: string
  readonly network: Network
  readonly record: (event: HistoryEvent) => void
  readonly env: Readonly<Record<string, string>>
  readonly say: (text: string) => void
  readonly scheme: 'http' | 'https'
  /** The files of two builds of the gateway. It starts with the first one. */
  readonly builds: readonly [string, string]
  /** The text of the configuration for the ports of the replica. */
  readonly yaml: (ports: { readonly listen: number; readonly admin: number }) => string
}

export interface Usage {
  readonly of: string
  readonly memory: number
  readonly files: number
}

export class Replica {
  readonly name: string
  readonly url: string
  readonly adminUrl: string
  readonly #parts: ReplicaParts
  readonly #ports: { readonly listen: number; readonly admin: number }
  readonly #seen = new Map<string, number>()
  #build: 0 | 1 = 0
  #child: ChildProcess | undefined
  #mayEnd = false

  static async create(parts: ReplicaParts): Promise<Replica> {
    const replica = new Replica(parts, { listen: await freePort(), admin: await freePort() })
    await parts.network.link(parts.name, replica.#ports.listen)
    replica.setClock(0)
    replica.writeFile()
    return replica
  }

  constructor(parts: ReplicaParts, ports: { readonly listen: number; readonly admin: number }) {
    this.name = parts.name
    this.url = `${parts.scheme}://${parts.network.host(parts.name)}:${ports.listen}`
    this.adminUrl = `http://127.0.0.1:${ports.admin}`
    this.#parts = parts
    this.#ports = ports
  }

  get #clock() {
    return join(this.#parts.folder, `${this.name}.clock`)
  }

  get #file() {
    return join(this.#parts.folder, `${this.name}.yaml`)
  }

  /** Writes the configuration as it is now. */
  writeFile(): void {
    writeFileSync(this.#file, this.#parts.yaml(this.#ports))
  }

  /** The next start is one of the other build. */
  switchBuild(): void {
    this.#build = this.#build === 0 ? 1 : 0
  }

  setClock(offsetMs: number): void {
    writeFileSync(this.#clock, String(offsetMs))
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** The primary process, then the workers. */
  pids(): readonly number[] {
    const pid = this.#child?.pid
    return pid === undefined || !this.isRunning ? [] : [pid, ...childrenOf(pid)]
  }

  /** How often the log has had a message since the world began. */
  said(message: string): number {
    return this.#seen.get(message) ?? 0
  }

  /** Starts it, and resolves when it is ready. */
  async start(): Promise<void> {
    const { folder, env, network, name, builds, say } = this.#parts
    const environment = new URL('replica-environment.mjs', import.meta.url).href
    const child = spawn(
      process.execPath,
      [...imageFlags, '--import', environment, builds[this.#build], 'run', '--config', this.#file],
      {
        cwd: root,
        env: { ...process.env, ...imageVariables, ...env, CHAOS_ADDRESS: network.host(name), CHAOS_CLOCK: this.#clock },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    this.#child = child
    this.#mayEnd = false
    const log = createWriteStream(join(folder, `${name}.log`), { flags: 'a' })
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', (line) => {
        log.write(`${line}\n`)
        this.#observe(line)
      })
    child.once('exit', (code, signal) => {
      if (!this.#mayEnd) {
        say(`  ${name} ended by itself: ${signal ?? code}`)
        this.#parts.record({ type: 'death', at: now(), replica: name, reason: String(signal ?? code) })
      }
    })
    // Lines may arrive after `exit`, but none after `close`.
    child.once('close', () => log.end())
    await until(`${name} is ready`, async () => (await this.#isReady()) || !this.isRunning)
  }

  /** SIGKILL for the primary process, which takes its workers with it. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined || !this.isRunning) return
    const pids = this.pids()
    const exited = once(child, 'exit')
    this.#mayEnd = true
    child.kill(signal)
    await exited
    await until(`the workers of ${this.name} have ended`, () => !pids.some(isAlive))
  }

  /** Writes the file. Resolves when the log says that the replica uses it, or when it has ended. */
  async reload(): Promise<void> {
    const before = this.said('config.reloaded')
    this.writeFile()
    if (!this.isRunning) return
    this.#child?.kill('SIGHUP')
    await until(`${this.name} has reloaded`, () => this.said('config.reloaded') > before || !this.isRunning)
  }

  /** Resident memory in bytes and open files of each process. */
  usage(): readonly Usage[] {
    return this.pids().map((pid, n) => ({
      of: n === 0 ? `${this.name} primary ${pid}` : `${this.name} worker ${pid}`,
      memory: Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024,
      files: readdirSync(`/proc/${pid}/fd`).length,
    }))
  }

  /** Like `usage`, with the bytes that V8 uses after a garbage collection. No process may hang. */
  async usageAfterCollection(): Promise<readonly (Usage & { readonly used?: number })[]> {
    const pids = this.pids()
    const found = await Promise.all(pids.map((pid) => this.#usedAfterCollection(pid)))
    return this.usage().map((usage) => {
      const used = found[pids.findIndex((pid) => usage.of.endsWith(` ${pid}`))]
      return { ...usage, ...(used !== undefined && { used }) }
    })
  }

  /** `undefined`: the process has ended. */
  async #usedAfterCollection(pid: number): Promise<number | undefined> {
    const file = `${this.#clock}.${pid}`
    rmSync(file, { force: true })
    if (!isAlive(pid)) return undefined
    process.kill(pid, 'SIGUSR2')
    const read = () => (existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0)
    await until(`process ${pid} has collected garbage`, () => read() > 0 || !isAlive(pid))
    return read() || undefined
  }

  async #isReady(): Promise<boolean> {
    const response = await fetch(`${this.adminUrl}/ready`, { signal: AbortSignal.timeout(2_000) }).catch(
      () => undefined,
    )
    await response?.text().catch(() => undefined)
    return response?.status === 200
  }

  #observe(line: string): void {
    if (!line.startsWith('{')) return
    const { msg, pid, how } = JSON.parse(line) as Readonly<Record<string, unknown>> & { readonly msg?: string }
    if (msg === undefined) return
    this.#seen.set(msg, this.said(msg) + 1)
    if (msg === 'worker.died') {
      const death = { type: 'death', at: now(), replica: this.name, reason: String(how) } as const
      this.#parts.record({ ...death, worker: Number(pid) })
    }
  }
}
