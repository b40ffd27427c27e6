import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accessibilityFaults, colorRules } from '../support/axe.ts'
import { startChromium } from '../support/chromium.ts'
import { basic, send, startKeyWorld } from '../support/key-world.ts'

const chromium = await startChromium()

test('A person makes a key in a browser, copies it, and ends it', async (t) => {
  const world = await startKeyWorld(t)
  const jane = await chromium.person(t, { viewport: { width: 390, height: 844 } })
  const page = await jane.tab()
  await page.goto(`${world.url}/.gatehouse/sessions`)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
  await page.getByRole('heading', { name: 'Keys of your programs' }).waitFor()
  assert.deepEqual(await accessibilityFaults(page), [])

  await page.getByLabel('Name of the program').fill('Calendar <on> the phone')
  await page.getByLabel('Application').selectOption('orders')
  await page.getByRole('button', { name: 'Make a key' }).click()
  await page.getByRole('heading', { name: 'Your new key' }).waitFor()

  const key = (await page.locator('code').textContent()) ?? ''
  assert.deepEqual(await accessibilityFaults(page), [])
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 200)
  // The page that showed the key shows it no more.
  await page.reload()
  await page.getByRole('heading', { name: 'Calendar <on> the phone' }).waitFor()
  assert.ok(!(await page.content()).includes(key))
  await page.goBack()
  assert.ok(!(await page.content()).includes(key))

  await page.goto(`${world.url}/.gatehouse/sessions`)
  assert.deepEqual(await accessibilityFaults(page), [])
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.deepEqual(await accessibilityFaults(page, colorRules), [])
  await page.getByRole('button', { name: 'End the key Calendar <on> the phone' }).click()
  const outcome = page.getByRole('status')
  await outcome.waitFor()
  assert.equal(await outcome.textContent(), 'The key has ended.')
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 401)
  // The session of the browser was there all the time.
  await page.getByRole('heading', { name: / This browser$/ }).waitFor()
  assert.deepEqual(
    jane.complaints.filter((complaint) => !complaint.includes('status of')),
    [],
  )
})
