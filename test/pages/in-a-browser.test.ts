// Slow: 3 s, Chromium shows the templates of operators
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { messagesByLanguage } from '../../src/pages/messages.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { picture, startChromium } from '../support/chromium.ts'
import { startWorld } from '../support/world.ts'
import { branded, choose, logo, startPages } from './support.ts'

const chromium = await startChromium()

test('A logo with scripts or external content is shown, and nothing in it runs or loads', async (t) => {
  const { nobody } = await startPages(t, chromium, branded)
  await nobody.page.goto('/.gatehouse/nothing-here')

  await nobody.page.getByRole('img', { name: 'Example Ltd' }).waitFor()
  assert.equal(await nobody.page.evaluate('document.images[0].naturalWidth'), 160)
})

test('A template of the operator is shown with its style and logo, in the language of the browser', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-pages-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const html = `<!doctype html><html lang="{{lang}}" dir="{{dir}}"><title>{{title}}</title>
<style>\r\nmain { border-top: 8px solid rgb(1, 2, 3) }\r\n</style>
<main><img src="{{logo_url}}" alt=""><h1>{{title}}</h1><p>{{text}}</p>
<p><a href="{{other_account_url}}">{{other_account_label}}</a><p>{{request_label}} {{request_id}}</main>`
  writeFileSync(join(folder, 'forbidden.html'), html)
  const { samir } = await startPages(t, chromium, `\n  logo: '${logo}'\n  templates: ${folder}`)
  await samir.page.setExtraHTTPHeaders({ 'accept-language': 'fr' })

  await samir.page.goto('/admin/')

  await samir.page.getByRole('heading', { name: messagesByLanguage.fr.errors.ERR_FORBIDDEN }).waitFor()
  const [border, width] = (await samir.page.evaluate(
    "[getComputedStyle(document.querySelector('main')).borderTopColor, document.images[0].naturalWidth]",
  )) as [string, number]
  assert.equal(border, 'rgb(1, 2, 3)')
  assert.equal(width, 160)
  assert.deepEqual(await accessibilityFaults(samir.page), [])
  assert.deepEqual(
    samir.complaints.filter((complaint) => !complaint.includes('status of 403')),
    [],
  )
})

test('A person without access signs in with another account and gets access', async (t) => {
  const world = await startWorld(t)
  const person = await chromium.person(t)
  const page = await person.tab()
  await page.goto(`${world.url}/admin/?month=may`)
  await choose(page, 'Samir Haddad')
  await page.getByRole('heading', { name: 'You do not have access to this page.' }).waitFor()

  await page.getByRole('link', { name: 'Sign in with another account' }).click()
  await choose(page, 'Jane Doe')
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor()

  assert.equal(page.url(), `${world.url}/admin/?month=may`)
  assert.deepEqual(
    world.provider.sessions().map(({ sub }) => sub),
    ['jane'],
  )
})

test('The screenshots of the documentation are made', async (t) => {
  const { nobody, samir } = await startPages(t, chromium, branded.replace(logo, houseLogo))
  await samir.page.setViewportSize({ width: 900, height: 560 })
  await samir.page.goto('/admin/')
  await samir.page.getByText('Request ID').waitFor()
  await picture(samir.page, 'page-forbidden')

  await nobody.page.setViewportSize({ width: 900, height: 560 })
  await nobody.page.emulateMedia({ colorScheme: 'dark' })
  await nobody.page.setExtraHTTPHeaders({ 'accept-language': 'de' })
  await nobody.page.goto('/.gatehouse/callback')
  await nobody.page.getByText('Anfragenummer').waitFor()
  await picture(nobody.page, 'page-sign-in-failed')
})

const houseLogo =
  'data:image/svg+xml;base64,' +
  Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 150 40" width="150" height="40">
<path d="M4 36V16L20 4l16 12v20H26V24H14v12z" fill="#c2255c"/>
<text x="46" y="28" font-family="sans-serif" font-size="20" font-weight="600" fill="#c2255c">Example</text></svg>`,
  ).toString('base64')
