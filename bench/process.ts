import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'

const children = new Set<ChildProcess>()
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')))

/** In a child: listens on a free port and says which. */
export function serving(server: Server): void {
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

/** Starts a file of this folder; the clock ticks 100 times a second in `/proc/PID/stat`. */
export function start(file: string, args: readonly string[] = []): ChildProcess {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const child = fork(path, args, { execArgv: ['--import', 'tsx'], env: { ...process.env, NODE_ENV: 'production' } })
  children.add(child)
  return child
}

/** Starts a server of this folder; resolves when it listens. */
export async function startServer(file: string, args: readonly string[] = []): Promise<{ pid: number; url: string }> {
  const child = start(file, args)
  const [port] = (await once(child, 'message')) as [number]
  return { pid: child.pid as number, url: `http://127.0.0.1:${port}` }
}

/** Starts the gateway that was built; resolves when it says that it is ready. */
export async function startGateway(file: string, env: Readonly<Record<string, string>>): Promise<{ pid: number }> {
  const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
  const child = spawn(process.execPath, [main, 'run', '--config', file], {
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  for await (const chunk of child.stdout.setEncoding('utf8') as AsyncIterable<string>)
    if (chunk.includes('gatehouse is ready')) break
  return { pid: child.pid as number }
}

const ticksPerSecond = 100

/** The processor time that a process with all its threads has used, in µs. */
export function cpuMicros(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // After the name, which may hold anything, utime and stime are the 12th and 13th field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1e6
}
