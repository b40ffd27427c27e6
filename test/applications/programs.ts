import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'

/** A running application. */
export interface Application {
  readonly url: URL
}

/** A test context, or any object with `after`. `{ after }` of node:test is that of all tests. */
export interface Scope {
  after(over: () => unknown): void
}

const endings = new WeakMap<Scope, (() => unknown)[]>()

/**
 * Does something when the test ends, the last one first: a program has to end before its folder is
 * removed.
 */
function atEnd(t: Scope, ending: () => unknown): void {
  const known = endings.get(t)
  if (known !== undefined) return void known.push(ending)
  const all = [ending]
  endings.set(t, all)
  t.after(async () => {
    for (const each of all.toReversed()) await each()
  })
}

interface ProgramOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

type CommandLine = readonly [program: string, ...args: string[]]

/**
 * Runs a program until the test ends.
 * @returns why it does not run any more, with its output; `undefined` while it runs
 */
function startProcess(
  t: Scope,
  [program, ...args]: CommandLine,
  { cwd, env = {} }: ProgramOptions = {},
): () => string | undefined {
  const child = spawn(program, args, {
    ...(cwd !== undefined && { cwd }),
    env: { ...process.env, ...env },
    // A process group of its own: some programs start others.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-10_000)))
  const exited = once(child, 'exit')
  atEnd(t, async () => {
    // Some programs finish their work for minutes before they end. The test discards their data.
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    await exited
  })
  return () => (child.exitCode === null ? undefined : `${program} has ended:\n${output}`)
}

/** Runs a program until the test ends, and waits until it serves `url`. */
export async function startProgram(
  t: Scope,
  commandLine: CommandLine,
  url: URL,
  options: ProgramOptions = {},
): Promise<Application> {
  const ended = startProcess(t, commandLine, options)
  await until(`${commandLine[0]} serves ${url.href}`, async () => {
    const response = await fetch(url, { redirect: 'manual' }).catch(() => undefined)
    // undici throws where nobody can catch it when a connection ends before its content is read.
    await response?.body?.cancel()
    assert.equal(ended(), undefined)
    return response !== undefined && response.status < 500
  })
  return { url: new URL(url.origin) }
}

/** A folder for the data of an application, until the test ends. */
export function dataFolder(t: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-application-'))
  atEnd(t, () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * Runs a program to its end.
 * @throws {AssertionError} when it fails, with its output
 */
export function run(
  [program, ...args]: CommandLine,
  { cwd, env = {}, input = '' }: ProgramOptions & { readonly input?: string } = {},
): void {
  const options = {
    encoding: 'utf8',
    input,
    env: { ...process.env, ...env },
    ...(cwd !== undefined && { cwd }),
  } as const
  const { status, stderr, stdout } = spawnSync(program, args, options)
  assert.equal(status, 0, `${program}: ${stderr}${stdout}`)
}

/**
 * Copies a folder, and what its links lead to: a test must not write into the folders of Debian.
 * With `dereference`, `cpSync` keeps the links inside
 * (https://github.com/nodejs/node/issues/59168).
 */
export function copyWithLinked(from: string, to: string): void {
  run(['cp', '--recursive', '--dereference', from, to])
}

/**
 * Serves a folder with PHP until the test ends.
 * @param path responds when the application runs
 */
export async function startPhp(t: Scope, folder: string, path: string): Promise<Application> {
  const address = `127.0.0.1:${await freePort()}`
  // Scripts of a page are requested together.
  const env = { PHP_CLI_SERVER_WORKERS: '4' }
  return startProgram(t, ['php', '-S', address, '-t', folder], new URL(`http://${address}${path}`), { env })
}

/** Starts a MariaDB with an empty database. @returns its socket */
export async function startMariaDb(t: Scope, database: string): Promise<string> {
  const folder = dataFolder(t)
  const [data, socket] = [join(folder, 'data'), join(folder, 'socket')]
  const user = process.getuid?.() === 0 ? ['--user=root'] : []
  run(['mariadb-install-db', '--no-defaults', ...user, `--datadir=${data}`, '--auth-root-authentication-method=normal'])
  const options = ['--no-defaults', ...user, `--datadir=${data}`, `--socket=${socket}`, '--skip-networking']
  startProcess(t, ['mariadbd', ...options])
  const query = (sql: string) => spawnSync('mariadb', ['--no-defaults', `--socket=${socket}`, '-uroot', '-e', sql])
  await until('MariaDB responds', () => query('SELECT 1').status === 0)
  assert.equal(query(`CREATE DATABASE ${database}`).status, 0)
  return socket
}
