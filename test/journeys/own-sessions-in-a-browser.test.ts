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

  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'You are signed out.' }).waitFor()
  assert.deepEqual(
    jane.complaints.filter((complaint) => !complaint.includes('status of')),
    [],
  )
})
