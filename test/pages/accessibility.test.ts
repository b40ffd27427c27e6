// Slow: 4 s, Chromium examines each page in each language and color
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { languages } from '../../src/config/model/pages.ts'
import { messagesByLanguage } from '../../src/pages/messages.ts'
import { accessibilityFaults, colorRules } from '../support/axe.ts'
import { startChromium } from '../support/chromium.ts'
import { isLongSearch } from '../support/searches.ts'
import { branded, pages, startPages } from './support.ts'

const chromium = await startChromium()

for (const [look, settings, language] of [
  ['plain', '{}', 'en'],
  ...languages.map((language) => ['branded', branded, language] as const),
] as const)
  test(`axe-core finds nothing on the ${look} pages in ${language}, light and dark, and the browser loads nothing and reports no error`, async (t) => {
    const { nobody, samir } = await startPages(t, chromium, settings)
    const asked: string[] = []

    for (const [name, path, who, status] of pages) {
      const { page, complaints } = who === 'samir' ? samir : nobody
      await page.setExtraHTTPHeaders({ 'accept-language': `${language}-XX, en;q=0.1` })
      const ask = (request: { url(): string }) => void asked.push(request.url())
      page.on('request', ask)
      const response = await page.goto(path)
      page.off('request', ask)

      assert.equal(response?.status(), status, name)
      assert.equal(await page.locator('html').getAttribute('lang'), language)
      assert.equal(await page.evaluate('getComputedStyle(document.body).direction'), messagesByLanguage[language].dir)
      await page.emulateMedia({ colorScheme: 'light' })
      assert.deepEqual(await accessibilityFaults(page), [], name)
      // The colors are the same in all languages.
      if (language === 'en' || isLongSearch) {
        await page.emulateMedia({ colorScheme: 'dark' })
        assert.deepEqual(await accessibilityFaults(page, colorRules), [], `${name}, dark`)
      }
      // A status is one.
      assert.deepEqual(
        complaints.filter((complaint) => !complaint.includes('status of')),
        [],
      )
      assert.doesNotMatch(await page.title(), /owned/)
    }
    assert.deepEqual(
      asked.filter((url) => !url.startsWith('data:')).map((url) => new URL(url).pathname),
      pages.map(([, path]) => path.replace(/\?.*/, '')),
    )
  })

test('axe-core finds text with low contrast (test of the test)', async (t) => {
  const { nobody } = await startPages(
    t,
    chromium,
    "{ colours: { light: { accent: '#ff9db5' } }, support: { url: https://a.example } }",
  )
  await nobody.page.emulateMedia({ colorScheme: 'light' })
  await nobody.page.goto('/.gatehouse/signed-out')

  const [fault, ...more] = await accessibilityFaults(nobody.page)
  assert.match(String(fault), /^color-contrast: a/)
  assert.deepEqual(more, [])
})

test('Each page is readable with a width of 320 px and with text of twice the size', async (t) => {
  const { nobody, samir } = await startPages(t, chromium, branded)
  for (const who of [nobody, samir]) {
    const session = await who.person.context.newCDPSession(who.page)
    // What the menu of a browser sets as the size of text.
    await session.send('Page.setFontSizes', { fontSizes: { standard: 32 } })
  }

  for (const language of languages)
    for (const [name, path, who] of pages) {
      const { page } = who === 'samir' ? samir : nobody
      await page.setExtraHTTPHeaders({ 'accept-language': language })
      await page.goto(path)
      for (const width of [320, 640]) {
        await page.setViewportSize({ width, height: 480 })
        const [scrollWidth, clientWidth] = (await page.evaluate(
          '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
        )) as [number, number]
        assert.ok(scrollWidth <= clientWidth, `${name} in ${language}: ${scrollWidth} of ${clientWidth} px`)
        assert.equal(await page.evaluate('getComputedStyle(document.body).fontSize'), '34px')
      }
    }
})

test('Each link and button is reachable by keyboard with a visible focus, and nothing moves', async (t) => {
  const { nobody, samir } = await startPages(t, chromium, branded)

  for (const [name, path, who] of pages) {
    const { page } = who === 'samir' ? samir : nobody
    await page.goto(path)
    const offered = await page.locator('a, button').count()
    assert.ok(offered > 1, name)

    for (let index = 0; index < offered; index += 1) {
      await page.keyboard.press('Tab')
      assert.deepEqual(await page.evaluate(focused), [index, 'solid', '3px'], name)
    }
    assert.equal(await page.evaluate(moving), 0, name)
  }
})

test('Pages follow the color scheme of the system, with the colors of the configuration', async (t) => {
  const { nobody } = await startPages(t, chromium, "{ colours: { dark: { background: '#001122' } } }")
  const background = () => nobody.page.evaluate('getComputedStyle(document.body).backgroundColor')
  await nobody.page.goto('/.gatehouse/signed-out')

  await nobody.page.emulateMedia({ colorScheme: 'light' })
  assert.equal(await background(), 'rgb(242, 244, 247)')
  await nobody.page.emulateMedia({ colorScheme: 'dark' })
  assert.equal(await background(), 'rgb(0, 17, 34)')
})

const focused = `[
  [...document.querySelectorAll('a, button')].indexOf(document.activeElement),
  getComputedStyle(document.activeElement).outlineStyle,
  getComputedStyle(document.activeElement).outlineWidth,
]`
const moving = `document.getAnimations().length + [...document.querySelectorAll('*')].filter((element) =>
  getComputedStyle(element).transitionDuration !== '0s').length`
