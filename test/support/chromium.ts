import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core'
import { chromiumArguments, chromiumPath, shellPath } from './chromium-program.ts'

/** A test context, or any object with `after`. `{ after }` of node:test is that of all tests. */
interface Scope {
  after(over: () => unknown): void
}

/** One real browser, in which each person has separate cookies. */
export interface Chromium {
  person(scope: Scope, options?: BrowserContextOptions): Promise<Person>
}

/** A person who uses the browser. */
export interface Person {
  readonly context: BrowserContext
  /**
   * What the browser reported: errors in the console, uncaught exceptions, violated Content
   * Security Policies.
   */
  readonly complaints: readonly string[]
  /** Opens a new, empty tab. */
  tab(): Promise<Page>
}

export interface ChromiumOptions {
  /** The whole browser, for what the shell does not have. */
  readonly isWhole?: boolean
  /** Third-party cookies are blocked, and what pages store is kept for each site of the tab. */
  readonly partitions?: boolean
  /** The whole browser, which keeps pages in memory for the Back button. */
  readonly keepsPagesForBack?: boolean
}

/** By their options. */
const browsers = new Map<string, Promise<Browser>>()
after(async () => {
  for (const browser of browsers.values()) await (await browser).close()
})

/**
 * Starts the browser, which all files in this process share until the last test is over.
 * @throws when there is no Chromium
 */
export async function startChromium(options: ChromiumOptions = {}): Promise<Chromium> {
  const key = JSON.stringify(options)
  const running = browsers.get(key) ?? launch(options)
  browsers.set(key, running)
  const browser = await running
  return {
    person: async (scope, options = {}) => {
      const viewport = { width: 1100, height: 750 }
      const context = await browser.newContext({ viewport, deviceScaleFactor: 1, ...options })
      scope.after(() => context.close())
      context.setDefaultTimeout(30_000)
      return { context, complaints: await listenForComplaints(context), tab: () => context.newPage() }
    },
  }
}

async function launch({
  keepsPagesForBack = false,
  isWhole = keepsPagesForBack,
  partitions = false,
}: ChromiumOptions): Promise<Browser> {
  // Pictures in the documentation show what the whole browser shows.
  const needsWhole = isWhole || process.env['UPDATE_SCREENSHOTS'] === '1'
  return chromium.launch({
    executablePath: needsWhole ? chromiumPath() : shellPath(),
    args: partitions ? partitioning(chromiumArguments) : chromiumArguments,
    ignoreDefaultArgs: keepsPagesForBack ? ['--disable-back-forward-cache'] : [],
  })
}

function partitioning(args: readonly string[]): string[] {
  return [
    ...args.map((argument) => argument.replace(',ThirdPartyStoragePartitioning', '')),
    '--test-third-party-cookie-phaseout',
  ]
}

async function listenForComplaints(context: BrowserContext): Promise<readonly string[]> {
  const complaints: string[] = []
  context.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`${message.page()?.url()}: ${message.text()}`)
  })
  context.on('weberror', (thrown) => complaints.push(`${thrown.page()?.url()}: ${thrown.error().message}`))
  await context.addInitScript({
    content: `addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
      console.error('violates its policy', effectiveDirective, blockedURI))`,
  })
  return complaints
}

/** Replaces a picture in docs/images if UPDATE_SCREENSHOTS=1 is set. */
export async function picture(
  page: Page,
  name: string,
  format: { readonly type: 'jpeg'; readonly quality: number } | { readonly type: 'png' } = { type: 'png' },
): Promise<void> {
  if (process.env['UPDATE_SCREENSHOTS'] !== '1') return
  const suffix = format.type === 'png' ? 'png' : 'jpg'
  const path = fileURLToPath(new URL(`../../docs/images/${name}.${suffix}`, import.meta.url))
  await page.screenshot({ path, caret: 'hide', animations: 'disabled', ...format })
}
