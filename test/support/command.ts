import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from './until.ts'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** A command that runs as a separate process. */
export interface Command {
  readonly child: ChildProcess
  readonly pid: number
  /** The output up to now. */
  readonly out: () => string
  readonly err: () => string
  /** The parsed lines of its log. */
  readonly log: () => Record<string, unknown>[]
  /** Resolves to the log line with this message. */
  said(message: string): Promise<Record<string, unknown>>
  /** Resolves when this text is on standard output. */
  prints(text: string): Promise<void>
  /** Resolves to the exit code, or to the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>
}

export interface CommandOptions {
  /** Default: the built gateway. */
  readonly program?: readonly [string, ...string[]]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The user that the command runs as. */
  readonly user?: { readonly uid: number; readonly gid: number }
  /** Whether the command gets a separate process group, as in a shell. */
  readonly ownGroup?: boolean
  /** Whether the test writes to its standard input. If not, it has no standard input. */
  readonly keyboard?: boolean
}

/** Runs the built program. */
export const gatehouse = [process.execPath, join(root, 'dist', 'main.js')] as const

export function startCommand(t: TestContext, args: readonly string[], options: CommandOptions = {}): Command {
  const [program, ...first] = options.program ?? gatehouse
  const child = spawn(program, [...first, ...args], {
    cwd: options.cwd ?? root,
    env: { ...process.env, ...options.env },
    stdio: [(options.keyboard === true ? 'pipe' : 'ignore') as 'pipe', 'pipe', 'pipe'],
    detached: options.ownGroup ?? false,
    ...options.user,
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk))
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals)
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  })
  const log = () =>
    out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  const line = (message: string) => log().find(({ msg }) => msg === message)
  const comes = (what: string, has: () => boolean) =>
    until(what, () => {
      if (has()) return true
      if (child.exitCode !== null) throw new Error(`the process ended with ${child.exitCode}`)
      return false
    }).catch((error: Error) => {
      throw new Error(`${error.message}; it has said: ${out}${err}`)
    })
  return {
    child,
    pid: child.pid as number,
    out: () => out,
    err: () => err,
    log,
    ended,
    said: async (message) => {
      await comes(`the line "${message}"`, () => line(message) !== undefined)
      return line(message) as Record<string, unknown>
    },
    prints: (text) => comes(text, () => out.includes(text)),
  }
}

/** Whether a process exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return children === '' ? [] : children.split(' ').map(Number)
}
