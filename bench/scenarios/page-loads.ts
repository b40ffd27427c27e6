import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { chromium, type Browser, type Page } from 'playwright-core'
import { getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { issueCertificates } from '../../test/support/certificates.ts'
import { chromiumArguments, shellPath } from '../../test/support/chromium-program.ts'
import { freePort } from '../../test/support/free-port.ts'
import { mainPage, recordMainPage } from '../phpmyadmin.ts'
import { quietness, table } from '../report.ts'
import { figureOf, percentile, runInTurn, startMeter, type Disturbed } from '../rounds.ts'
import { settingOf, type Stand, trustOnly } from '../stand.ts'
import { standAll, withRedis } from './requests.ts'
import type { Bench, Scenario } from './scenario.ts'

const loadsInARound = 6
const leastRounds = 10

/**
 * What a person waits for: a page of a real application with its files in a real browser over TLS
 * and HTTP/2, with an empty cache and new connections, then again; and the first page after a
 * sign-in, from the click.
 */
export const pageLoads: Scenario = {
  name: 'page-loads',
  title: 'The main page of phpMyAdmin in Chromium, over TLS and HTTP/2',
  async run(bench) {
    const { server } = issueCertificates()
    const usual = getGlobalDispatcher()
    trustOnly(server)
    const browser = await chromium.launch({
      executablePath: shellPath(),
      args: [...chromiumArguments, `--ignore-certificate-errors-spki-list=${pinOf(server.cert)}`],
    })
    try {
      const { files, bytes } = await recordMainPage(browser, bench.bed.folder)
      bench.print(`The page has ${files} files of ${(bytes / 2 ** 20).toFixed(1)} MiB.`)
      const stands = await standAll(withRedis(bench), { tls: server }, 'http2')
      for (const stand of stands) await loadsOf(browser, stand, 2)
      const plan = { ...bench.plan, rounds: Math.max(bench.plan.rounds, leastRounds) }
      const measured = await runInTurn(stands, plan, (stand) => loadsOf(browser, stand, loadsInARound))
      printLoads(bench, measured)
      const signingIn = stands.filter(({ contender }) => contender.signsIn)
      const warm = await runInTurn(signingIn, plan, (stand) => firstPagesOf(bench, browser, stand, loadsInARound))
      const cold = await runInTurn(signingIn, plan, async ({ contender }) => {
        const setting = settingOf(await freePort(), { ...bench.options, tls: server })
        const process = await contender.start(bench.bed, setting)
        const round = await firstPagesOf(bench, browser, { ...setting, pid: process.pid }, 1)
        await process.stop()
        return round
      })
      printFirstPages(bench, warm, cold)
    } finally {
      await browser.close()
      setGlobalDispatcher(usual)
    }
  },
}

/** Chromium keeps files of a server in its cache only when it trusts the certificate. */
function pinOf(certificate: string): string {
  const key = new X509Certificate(readFileSync(certificate)).publicKey
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64')
}

interface LoadsRound extends Disturbed {
  /** From the start of the navigation to the end of the load event, in ms. */
  readonly cold: readonly number[]
  readonly warm: readonly number[]
}

async function loadsOf(browser: Browser, stand: Stand, count: number): Promise<LoadsRound> {
  const stop = startMeter(stand.pid)
  const [cold, warm]: [number[], number[]] = [[], []]
  for (let n = 0; n < count; n += 1) {
    const context = await browser.newContext()
    await context.addCookies(cookiesOf(stand))
    const page = await context.newPage()
    cold.push(await load(page, `${originOf(stand)}${mainPage}`))
    warm.push(await load(page, `${originOf(stand)}${mainPage}`))
    await context.close()
  }
  return { cold, warm, foreign: stop().foreign }
}

/** Loads a page and returns the time of its load event, in ms. */
async function load(page: Page, url: string): Promise<number> {
  const response = await page.goto(url, { waitUntil: 'load' })
  if (response?.status() !== 200 || response.url() !== url)
    throw new Error(`${url}: ${response?.status()} ${response?.url()}`)
  // The program of the page itself may not have run to the end of its load event.
  const read = () => page.evaluate('performance.getEntriesByType("navigation")[0].loadEventEnd') as Promise<number>
  for (;;) {
    const end = await read()
    if (end > 0) return end
  }
}

interface FirstPagesRound extends Disturbed {
  readonly ms: readonly number[]
}

/** People who have no session open the page: from the click to its load, without the provider. */
async function firstPagesOf(
  { bed }: Bench,
  browser: Browser,
  stand: Pick<Stand, 'pid' | 'port'>,
  count: number,
): Promise<FirstPagesRound> {
  const stop = startMeter(stand.pid)
  const ms: number[] = []
  for (let n = 0; n < count; n += 1) {
    const context = await browser.newContext()
    const page = await context.newPage()
    const before = bed.provider.respondingMs()
    const startedAt = performance.now()
    await page.goto(`${originOf(stand)}/alone`, { waitUntil: 'load' })
    const took = performance.now() - startedAt
    if ((await page.textContent('p')) !== 'Welcome.') throw new Error(`signing in ended at ${page.url()}`)
    ms.push(took - (bed.provider.respondingMs() - before))
    await context.close()
  }
  return { ms, foreign: stop().foreign }
}

function originOf({ port }: Pick<Stand, 'port'>): string {
  return `https://127.0.0.1:${port}`
}

function cookiesOf(stand: Stand) {
  const pairs = (stand.visitors[0]?.cookie ?? '').split('; ').filter(Boolean)
  return pairs.map((pair) => {
    const at = pair.indexOf('=')
    return { name: pair.slice(0, at), value: pair.slice(at + 1), url: originOf(stand), secure: true }
  })
}

function printLoads({ print, draw, facts }: Bench, measured: ReadonlyMap<Stand, readonly LoadsRound[]>): void {
  const rows = [...measured].map(([{ contender, title }, rounds]) => {
    const cells = (['cold', 'warm'] as const).flatMap((kind) =>
      [0.5, 0.95].map((part) => {
        const value = percentile(
          rounds.flatMap((round) => round[kind]),
          part,
        )
        facts.set(`page ${kind} p${part * 100} ${contender.name}`, { ...figureOf(rounds, () => 0), value })
        return value.toFixed(0)
      }),
    )
    return [title, ...cells, quietness(rounds)]
  })
  print(table(['', 'cold: p50 ms', 'p95', 'warm: p50 ms', 'p95', 'quiet rounds'], rows))
  const group = (name: string, column: number) => ({
    name,
    bars: rows.map((row) => ({ name: row[0] ?? '', value: Number(row[column]) })),
  })
  draw({
    title: 'The main page of phpMyAdmin: from the start of the navigation to the load event, ms',
    groups: [
      group('empty cache, p50', 1),
      group('empty cache, p95', 2),
      group('again, p50', 3),
      group('again, p95', 4),
    ],
  })
}

type FirstPages = ReadonlyMap<Stand, readonly FirstPagesRound[]>

function printFirstPages({ print, facts }: Bench, warm: FirstPages, cold: FirstPages): void {
  const rows = [...warm].map(([stand, rounds]) => {
    const { contender, title } = stand
    const first = cold.get(stand) ?? []
    const cell = (kind: string, of: readonly FirstPagesRound[], part: number) => {
      const ms = of.flatMap((round) => round.ms)
      const value = percentile(ms, part)
      facts.set(`first page ${kind} p${part * 100} ${contender.name}`, { ...figureOf(of, () => 0), value })
      return value.toFixed(0)
    }
    const cells = [cell('warm', rounds, 0.5), cell('warm', rounds, 0.95), cell('cold', first, 0.5)]
    return [title, ...cells, quietness([...rounds, ...first])]
  })
  print("The first page after a sign-in, from the click, without the time of the provider's responses:")
  print(table(['', 'p50 ms', 'p95', 'of a new process: p50', 'quiet rounds'], rows))
}
