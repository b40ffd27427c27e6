import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { accessibilityFaults, colorRules } from '../support/axe.ts'
import { startChromium } from '../support/chromium.ts'
import { startWorld, type World } from '../support/world.ts'

const chromium = await startChromium()

async function signIn(page: Page, world: World): Promise<void> {
  await page.goto(`${world.url}/`)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
}

test('A person who has too many sessions ends one, signs in, and sees what ended', async (t) => {
  const session = 'page: true\n  max_per_person: { count: 2, when_exceeded: refuse }'
  const world = await startWorld(t, { session })
  for (let n = 0; n < 2; n += 1) await world.browser().get(`${world.url}/`)
  const jane = await chromium.person(t, { viewport: { width: 390, height: 800 } })
  const page = await jane.tab()
  await signIn(page, world)

  await page.getByRole('heading', { name: 'You are signed in in too many browsers.' }).waitFor()
  assert.deepEqual(await accessibilityFaults(page), [])
  await page.getByRole('button', { name: 'End the session of Unknown browser' }).first().click()
  await page.getByRole('heading', { name: 'Jane Doe' }).waitFor()

  await page.goto(`${world.url}/.gatehouse/sessions`)
  await page.getByRole('button', { name: 'End the session of Unknown browser' }).click()
  const outcome = page.getByRole('status')
  await outcome.waitFor()
  assert.equal(await outcome.textContent(), 'The session has ended.')
  assert.equal(await page.evaluate('document.activeElement.getAttribute("role")'), 'status')
  assert.deepEqual(await accessibilityFaults(page), [])
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.deepEqual(await accessibilityFaults(page, colorRules), [])
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
  await page.getByRole('heading', { name: / This browser$/ }).waitFor()

  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'You are signed out.' }).waitFor()
  assert.deepEqual(
    jane.complaints.filter((complaint) => !complaint.includes('status of')),
    [],
  )
})

test('A person sees at a glance which browser this is, when each was used, and what the page can do', async (t) => {
  const world = await startWorld(t, { session: 'page: true' })
  const phone = world.browser()
  phone.userAgent =
    'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36'
  await phone.get(`${world.url}/`)
  const page = await (await chromium.person(t, { viewport: { width: 390, height: 844 } })).tab()
  await signIn(page, world)
  await page.goto(`${world.url}/.gatehouse/sessions`)

  // The values begin at one edge, also those of different sessions.
  assert.equal(await page.evaluate(`new Set([...document.querySelectorAll('dd')].map((dd) => dd.offsetLeft)).size`), 1)
  assert.deepEqual(await page.locator('dt').allInnerTexts(), [...facts, ...facts])
  const [first, other] = await page.getByRole('listitem').all()
  assert.deepEqual(
    [await first?.getByText('This browser').count(), await other?.getByText('This browser').count()],
    [1, 0],
  )
  await page.getByRole('button', { name: 'End the session of Chrome 142 on Android' }).waitFor()
  const filled = `[...document.querySelectorAll('button, a')].filter((action) =>
    getComputedStyle(action).backgroundColor !== 'rgba(0, 0, 0, 0)').map((action) => action.textContent)`
  assert.deepEqual(await page.evaluate(filled), ['End all other sessions'])
})

const facts = ['Signed in', 'Last used', 'IP address']
