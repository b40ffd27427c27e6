import { execFileSync, fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { connect, type AddressInfo, type Server } from 'node:net'
import type { Writable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const children = new Set<ChildProcess>()
// Not SIGKILL, because the child processes of httpd would keep running.
process.on('exit', () => children.forEach((child) => child.kill('SIGTERM')))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

function keep<Child extends ChildProcess>(child: Child): Child {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** In a child process: listens on a free port and sends its number to the parent. */
export function serving(server: Server): void {
  server.listen(0, '127.0.0.1', 4096, () => process.send?.((server.address() as AddressInfo).port))
}

/** Starts a file of this folder in a new process. */
export function start(file: string, args: readonly string[] = []): ChildProcess {
  const path = fileURLToPath(new URL(file, import.meta.url))
  return keep(fork(path, args, { execArgv: ['--import', 'tsx'], env: { ...process.env, NODE_ENV: 'production' } }))
}

/** Starts a server of this folder; resolves when it listens. */
export async function startServer(file: string, args: readonly string[] = []): Promise<{ pid: number; url: string }> {
  const child = start(file, args)
  const [port] = (await once(child, 'message')) as [number]
  return { pid: child.pid as number, url: `http://127.0.0.1:${port}` }
}

/** The built gateway. */
export const builtGateway = fileURLToPath(new URL('../dist/main.js', import.meta.url))

/** Starts the built gateway. Resolves when it reports that it is ready. */
export async function startGateway(file: string, env: Readonly<Record<string, string>>): Promise<{ pid: number }> {
  const child = keep(
    spawn(process.execPath, [builtGateway, 'run', '--config', file], {
      env: { ...process.env, NODE_ENV: 'production', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  for await (const chunk of child.stdout.setEncoding('utf8') as AsyncIterable<string>)
    if (chunk.includes('gatehouse is ready')) break
  return { pid: child.pid as number }
}

/** A shell command that reads its input at 40 KB/s. */
export const readSlowly = 'while [ "$(head -c 4096 | wc -c)" -gt 0 ]; do sleep 0.1; done'

/** The input of a process that reads it at 40 KB/s, as a slow disk would take it. */
export function slowReader(): Writable {
  return keep(spawn('sh', ['-c', readSlowly], { stdio: ['pipe', 'ignore', 'inherit'] })).stdin as Writable
}

/** Makes a named pipe that a process reads at 40 KB/s, for a program that opens its log itself. */
export function slowPipe(path: string): string {
  execFileSync('mkfifo', [path])
  keep(spawn('sh', ['-c', `(${readSlowly}) < "$0"`, path], { stdio: ['ignore', 'ignore', 'inherit'] }))
  return path
}

export interface Program {
  readonly command: string
  readonly args: readonly string[]
  /** The processors that it may use, in the syntax of taskset(1): `0`, `0,1`. */
  readonly cpus: string
  readonly env?: Readonly<Record<string, string>>
  /** The file for its output, which is shown when it does not start. */
  readonly logFile: string
  /** Receives its standard output instead of the file: a stream or a file descriptor. */
  readonly stdout?: Writable | number
}

export interface RunningProgram {
  readonly pid: number
  /** Sends SIGTERM, and SIGKILL after 5 s. */
  stop(): Promise<void>
}

/**
 * Starts a program on its own processors. taskset executes the program in its own process, so the
 * pid is that of the program.
 */
export function startProgram({ command, args, cpus, env = {}, logFile, stdout }: Program): RunningProgram {
  const log = openSync(logFile, 'a')
  const child = keep(
    spawn('taskset', ['-c', cpus, command, ...args], {
      env: { ...process.env, NODE_ENV: 'production', ...env },
      stdio: ['ignore', stdout ?? log, log],
    }),
  )
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    if ((await Promise.race([exited, wait(5_000, 'late', { ref: false })])) !== 'late') return
    child.kill('SIGKILL')
    await exited
  }
  return { pid: child.pid as number, stop }
}

/** Resolves when a server accepts connections on this port of loopback. */
export function untilListening(port: number): Promise<void> {
  return until(() => accepts(port), `nobody listens on port ${port}`)
}

/**
 * Resolves when the condition is true. Checks it every 2 ms.
 * @throws {Error} with `otherwise`, after 15 s
 */
export async function until(isTheCase: () => boolean | Promise<boolean>, otherwise: string): Promise<void> {
  const startedAt = performance.now()
  while (!(await isTheCase())) {
    if (performance.now() - startedAt > 15_000) throw new Error(`${otherwise} after 15 s`)
    await wait(2)
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const over = (response: boolean) => {
      socket.destroy()
      resolve(response)
    }
    socket.once('connect', () => over(true)).once('error', () => over(false))
  })
}
