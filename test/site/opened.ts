// Opens the built site in Chromium. `npm run docs -- --check` runs it. It is outside `npm test`,
// because VitePress has packages of its own.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { seriousViolations } from '../support/axe.ts'
import { startChromium } from '../support/chromium.ts'
import { root } from '../support/command.ts'

const { SITE_BASE: base = '/', SITE_VERSIONS: versions = 'main', SITE_PICTURES: pictures } = process.env
const [newest = 'main'] = versions.split(',')
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}

const server = createServer(({ url = '' }, response) => {
  const path = new URL(url, 'http://site').pathname.slice(base.length).replace(/\/$|^$/, '/index.html')
  try {
    const content = readFileSync(join(root, 'site', path))
    response.setHeader('content-type', types[extname(path)] ?? 'application/octet-stream').end(content)
  } catch {
    response.writeHead(404).end()
  }
}).listen(0, '127.0.0.1')
await once(server, 'listening')
after(() => server.close())
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const chromium = await startChromium()

/** Opens pages one after another, in a window of a width and with a color scheme. */
async function reader(t: TestContext, width: number, colorScheme: 'light' | 'dark') {
  const person = await chromium.person(t, { viewport: { width, height: 900 }, colorScheme })
  const page = await person.tab()
  const strangers: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) strangers.push(request.url())
  })
  return { page, complaints: person.complaints, strangers }
}

/** How many pixels the page is wider than its window. */
async function overflow(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}

for (const colorScheme of ['light', 'dark'] as const)
  for (const width of [1280, 390])
    test(`The site in ${colorScheme} colors has no serious accessibility fault, ${width} pixels wide`, async (t) => {
      const { page, complaints, strangers } = await reader(t, width, colorScheme)
      for (const name of ['', 'logout.html', 'reference.html', 'sizing.html', 'decisions/']) {
        await page.goto(`${origin}${base}main/${name}`, { waitUntil: 'networkidle' })
        if (pictures !== undefined)
          await page.screenshot({ path: join(pictures, `${colorScheme}-${width}-${name.replaceAll(/\W/g, '-')}.png`) })

        assert.deepEqual(await seriousViolations(page), [], name)
        assert.equal(await page.evaluate(`document.documentElement.classList.contains('dark')`), colorScheme === 'dark')
      }
      assert.deepEqual(complaints, [])
      assert.deepEqual(strangers, [])
    })

test('No page is wider than a telephone', async (t) => {
  const { page, complaints } = await reader(t, 390, 'light')
  const names = readdirSync(join(root, 'site', 'main'), { recursive: true, encoding: 'utf8' })
  const wide: string[] = []
  for (const name of names.filter((path) => path.endsWith('.html') && path !== '404.html')) {
    await page.goto(`${origin}${base}main/${name}`)
    if ((await overflow(page)) > 0) wide.push(name)
  }
  assert.ok(names.length > 50)
  assert.deepEqual(wide, [])
  assert.deepEqual(complaints, [])
})

test('The search finds the page about Logout Tokens, without another service', async (t) => {
  const { page, complaints, strangers } = await reader(t, 1280, 'light')
  await page.goto(`${origin}${base}main/`)
  await page.getByRole('button', { name: 'Search' }).first().click()
  await page.locator('#localsearch-input').fill('Logout Token')
  await page.locator('.results a[href*="/logout.html"]').first().click()
  await page.waitForURL(/\/main\/logout\.html/)

  assert.match(await page.locator('h1').first().innerText(), /logout/i)
  assert.deepEqual(complaints, [])
  assert.deepEqual(strangers, [])
})

for (const [words, found] of [
  ['idle_timeout', /\/reference\.html/],
  ['session.store.redis', /\/(?:reference|configuration|redis)\.html/],
  ['plain_path', /\/reference\.html#listen/],
  ['logout', /\/logout\.html/],
] as const)
  test(`The first results for ${words} are about it`, async (t) => {
    const { page } = await reader(t, 1280, 'light')
    await page.goto(`${origin}${base}main/`)
    await page.getByRole('button', { name: 'Search' }).first().click()
    await page.locator('#localsearch-input').fill(words)
    const results = page.locator('.results a')
    await results.first().waitFor()
    const links = await results.evaluateAll((all) => all.map((each) => each.getAttribute('href') ?? ''))

    assert.match(links.slice(0, 3).join('\n'), found, links.join('\n'))
  })

test('No part of the reference is cut, 1280 pixels wide', async (t) => {
  const { page } = await reader(t, 1280, 'light')
  await page.goto(`${origin}${base}main/reference.html`)
  const widths = await page
    .locator('.vp-doc li')
    .evaluateAll((items) => items.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))

  assert.ok(widths.length > 300)
  assert.deepEqual(
    widths.filter((hidden) => hidden > 0),
    [],
  )
})

test('The start leads to the newest release, and its list of versions to the others', async (t) => {
  const { page } = await reader(t, 1280, 'light')
  await page.goto(`${origin}${base}`)
  await page.waitForURL(`${origin}${base}${newest}/`)
  for (const version of versions.split(',').toReversed()) {
    await page.locator('.VPNavBarMenuGroup button').hover()
    await page.locator('.VPNavBarMenuGroup a', { hasText: new RegExp(`^${version}$`) }).click()
    await page.waitForURL(`${origin}${base}${version}/`)

    assert.equal((await page.locator('.VPNavBarMenuGroup button').innerText()).trim(), version)
  }
})
