// Slow: 3 s, Chromium fills in forms over the end of a session
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { messagesByLanguage } from '../../src/pages/messages.ts'
import { accessibilityFaults, colorRules } from '../support/axe.ts'
import { startChromium } from '../support/chromium.ts'
import { startFormApplication } from '../support/form-application.ts'
import { startWorld, type World } from '../support/world.ts'

const chromium = await startChromium()
const ask = { name: 'Do you want to send what you entered?' }

async function signIn(page: Page, world: World): Promise<void> {
  await page.goto(`${world.url}/forms`)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
  await page.waitForURL(`${world.url}/forms`)
}

test('A person fills in forms, the session ends, and the forms are sent once after the sign-in', async (t) => {
  const application = await startFormApplication(t)
  const world = await startWorld(t, { upstream: application.url, session: 'idle_timeout: 1m' })
  const jane = await chromium.person(t)
  const page = await jane.tab()
  await signIn(page, world)

  await page.getByLabel('Item').fill('Blaue Säge & Öl')
  await page.getByLabel('Note').fill('zwei\nZeilen')
  world.moveClock(61_000)
  await page.getByRole('button', { name: 'Order' }).click()
  await page.getByRole('heading', ask).waitFor()
  assert.equal(application.received.length, 0)
  await page.getByRole('button', { name: 'Send now' }).click()

  await page.getByRole('heading', { name: 'Thank you, jane' }).waitFor()
  assert.equal(page.url(), `${world.url}/orders?new=1`)
  assert.deepEqual(
    application.received.map(({ content }) => [...new URLSearchParams(content.toString())]),
    [
      [
        ['item', 'Blaue Säge & Öl'],
        ['note', 'zwei\r\nZeilen'],
      ],
    ],
  )

  await page.reload()
  await page.getByRole('heading', { name: 'What you entered has already been sent.' }).waitFor()
  await page.goBack()
  await page.goto(`${world.url}/forms`)
  assert.equal(application.received.length, 1)

  await page.getByLabel('Title').fill('Bild')
  const buffer = Buffer.from(Array.from({ length: 200_000 }, (_, n) => n % 251))
  await page.getByLabel('File').setInputFiles({ name: 'ä.bin', mimeType: 'application/octet-stream', buffer })
  world.moveClock(61_000)
  await page.getByRole('button', { name: 'Upload' }).click()
  await page.getByRole('heading', ask).waitFor()
  await page.getByRole('button', { name: 'Send now' }).click()
  await page.getByRole('heading', { name: 'Thank you, jane' }).waitFor()
  assert.equal(application.received[1]?.content.includes(buffer), true)

  await page.goto(`${world.url}/forms`)
  await page.getByLabel('Comment').fill('no')
  world.moveClock(61_000)
  await page.getByRole('button', { name: 'Comment' }).click()
  await page.getByRole('heading', ask).waitFor()
  await page.getByRole('button', { name: 'Do not send' }).click()
  await page.waitForURL(`${world.url}/forms`)
  assert.equal(application.received.length, 2)
})

test('axe-core finds nothing on the pages about kept forms, light and dark, and they fit a width of 320 px', async (t) => {
  const application = await startFormApplication(t)
  const world = await startWorld(t, { upstream: application.url, session: 'idle_timeout: 1m' })
  const jane = await chromium.person(t, { locale: 'de-DE', viewport: { width: 320, height: 480 } })
  const page = await jane.tab()
  const isAccessible = async (heading: string): Promise<void> => {
    await page.getByRole('heading', { name: heading }).waitFor()
    await page.emulateMedia({ colorScheme: 'light' })
    assert.deepEqual(await accessibilityFaults(page), [], heading)
    await page.emulateMedia({ colorScheme: 'dark' })
    assert.deepEqual(await accessibilityFaults(page, colorRules), [], `${heading}, dark`)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320, heading)
  }
  const { kept } = messagesByLanguage.de
  const order = async (): Promise<void> => {
    await page.getByLabel('Item').fill('Säge')
    await page.getByLabel('Note').fill('eilt')
    world.moveClock(61_000)
    await page.getByRole('button', { name: 'Order' }).click()
  }
  await signIn(page, world)

  await order()
  await isAccessible(kept.ask.title)
  await page.getByRole('button', { name: kept.send }).click()
  await page.getByRole('heading', { name: 'Thank you, jane' }).waitFor()
  await page.reload()
  await isAccessible(kept.sent.title)

  await page.goto(`${world.url}/forms`)
  await order()
  await page.getByRole('button', { name: kept.decline }).click()
  await page.waitForURL(`${world.url}/forms`)
  await page.goBack()
  await page.reload()
  await isAccessible(kept.gone.title)

  await page.goto(`${world.url}/forms`)
  for (const { sid } of world.provider.sessions()) world.provider.expireSession(sid)
  await order()
  await page.getByRole('button', { name: 'Samir' }).click()
  await isAccessible(kept.discarded.title)
})
