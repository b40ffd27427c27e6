import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accessibilityFaults, colorRules } from '../support/axe.ts'
import { startChromium } from '../support/chromium.ts'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { startWorld } from '../support/world.ts'

const chromium = await startChromium()

test('A person enters a password once, sends a form after the application has forgotten them, and removes the password', async (t) => {
  const application = await startSigningInApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    session: 'page: true',
    upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { page: /login, fields: { user: "{username}", pass: "{password}" } }`,
  })
  const jane = await chromium.person(t, { viewport: { width: 390, height: 800 } })
  const page = await jane.tab()

  await page.goto(`${world.url}/orders`)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
  await page.getByRole('heading', { name: /^Your password for orders/ }).waitFor()
  assert.deepEqual(await accessibilityFaults(page), [])
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.deepEqual(await accessibilityFaults(page, colorRules), [])
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
  await page.getByLabel('Password at the application').fill('wrong')
  await page.keyboard.press('Enter')
  await page.getByRole('status').getByText('The application has not accepted the password.').waitFor()
  assert.deepEqual(await accessibilityFaults(page), [])
  await page.getByLabel('Password at the application').fill('the password of jane')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Orders of jane' }).waitFor()
  assert.equal(page.url(), `${world.url}/orders`)

  application.endSessions()
  world.moveClock(61_000)
  await page.getByLabel('Item').fill('Toner & paper')
  await page.getByRole('button', { name: 'Order' }).click()
  await page.getByRole('button', { name: 'Send now' }).click()
  await page.getByRole('heading', { name: 'Orders of jane' }).waitFor()
  assert.deepEqual(application.saved, [['jane', 'item=Toner+%26+paper']])
  assert.equal(application.attempts.length, 3)

  await page.goto(`${world.url}/.gatehouse/sessions`)
  assert.deepEqual(await accessibilityFaults(page), [])
  await page.getByRole('button', { name: /^Remove the password for orders/ }).click()
  await page.getByRole('button', { name: /^Remove the password/ }).waitFor({ state: 'detached' })
  assert.deepEqual(jane.complaints, [])
})
