import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { after, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { parse, stringify } from 'yaml'
import { blocksOf, pages } from '../docs/markdown.ts'
import { kindOf } from '../docs/snippets.ts'
import { type Chromium, type Person, startChromium } from '../support/chromium.ts'
import { until } from '../support/until.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'
import { Missing } from './installed.ts'

const chromium = await startChromium({ after })

/** A running application. */
export interface Application {
  readonly url: URL
}

/**
 * Tests of one application. Without what the application needs, they are skipped, and say what is
 * missing.
 * @param install downloads the application
 */
export function journeysWith(
  name: string,
  install: () => void,
  journeys: Readonly<Record<string, (t: TestContext, chromium: Chromium) => Promise<void>>>,
): void {
  let missing: string | undefined
  try {
    install()
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    missing = `${name} ${error.message}`
  }
  for (const [title, journey] of Object.entries(journeys))
    test(`${name}: ${title}`, { skip: missing ?? false }, (t) => journey(t, chromium))
}

/** A code block of the application's page in docs/applications. */
export function blockOf(page: string, language: string, nth = 0): string {
  const path = `docs/applications/${page}.md`
  const found = pages.filter((each) => each.path === path).flatMap(blocksOf)
  const block = found.filter((each) => each.language === language)[nth]
  return block?.text ?? assert.fail(`${path} has no block ${nth} of ${language}`)
}

/** Starts a gateway for an application, with the settings of its page in docs/applications. */
export function startGatewayFor(
  t: TestContext,
  application: Application,
  page: string,
  options: WorldOptions = {},
): Promise<World> {
  const settings = pages
    .filter(({ path }) => path === `docs/applications/${page}.md`)
    .flatMap(blocksOf)
    .find((block) => block.language === 'yaml' && kindOf(block) === 'upstream')
  // The demo provider has the groups in a nested claim.
  const text = settings?.text.replaceAll(/(?<=: )groups\b/g, 'fields.groups') ?? ''
  const { url: _, headers, ...others } = parse(text) as Readonly<Record<string, unknown>>
  const flow = (value: unknown) => stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim()
  const lines = (value: object, indent: number) =>
    Object.entries(value)
      .map(([key, each]) => `${key}: ${flow(each)}`)
      .join(`\n${' '.repeat(indent)}`)
  return startWorld(t, {
    upstream: application.url,
    ...(headers !== undefined && { headers: lines(headers as object, 6) }),
    upstreamSettings: lines(others, 4),
    session: 'idle_timeout: 1h',
    ...options,
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
export function startProcess(
  t: TestContext,
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
  t.after(async () => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
    await exited
  })
  return () => (child.exitCode === null ? undefined : `${program} has ended:\n${output}`)
}

/** Runs a program until the test ends, and waits until it serves `url`. */
export async function startProgram(
  t: TestContext,
  commandLine: CommandLine,
  url: URL,
  options: ProgramOptions = {},
): Promise<Application> {
  const ended = startProcess(t, commandLine, options)
  await until(`${commandLine[0]} serves ${url.href}`, async () => {
    const response = await fetch(url, { redirect: 'manual' }).catch(() => undefined)
    assert.equal(ended(), undefined)
    return response !== undefined && response.status < 500
  })
  return { url: new URL(url.origin) }
}

/** A folder for the data of an application, until the test ends. */
export function dataFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-application-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Opens a URL and signs in at the provider. */
export async function signIn(page: Page, url: string, person: 'Jane Doe' | 'Zoë Müller' = 'Jane Doe'): Promise<void> {
  await page.goto(url)
  await page.getByRole('button', { name: person }).click()
  await page.waitForURL((at) => at.origin === new URL(url).origin)
}

/** The provider ends its session of a person, and sends a Logout Token. */
export async function endAtProvider(world: World, sub = 'jane'): Promise<void> {
  const session = world.provider.sessions().find((each) => each.sub === sub)
  await world.provider.endSession(session?.sid ?? assert.fail(`${sub} has no session`))
}

/** Waits until the sign-in page of the provider is shown. */
export function atSignIn(page: Page): Promise<void> {
  return page.getByRole('heading', { name: 'Who are you today?' }).waitFor()
}

/** The tab of a person with a browser of her own. */
export async function tabOf(t: TestContext, chromium: Chromium): Promise<{ person: Person; page: Page }> {
  const person = await chromium.person(t)
  return { person, page: await person.tab() }
}
