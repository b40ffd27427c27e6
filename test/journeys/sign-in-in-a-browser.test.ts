import assert from 'node:assert/strict'
import { test } from 'node:test'
import { picture, startChromium } from '../support/chromium.ts'
import { choose, headerShown, isAtTheApplicationAs, isSignedOut, startDemoWorld } from './demo-application.ts'

const chromium = await startChromium()

test('A person signs in, sees the identity that the application gets, signs out, and signs in again only by a click', async (t) => {
  const world = await startDemoWorld(t)
  const page = await (await chromium.person(t)).tab()

  await page.goto(world.url)
  await page.getByRole('heading', { name: 'Who are you today?' }).waitFor()
  await picture(page, 'people')
  await choose(page, 'Zoë Müller')
  await isAtTheApplicationAs(page, 'Zoë Müller')
  assert.equal(await headerShown(page, 'X-Remote-User'), 'zoe')
  assert.equal(await headerShown(page, 'X-Cost-Centre'), 'CC-1200')
  assert.equal(await headerShown(page, 'X-Groups'), 'sales,Vertrieb%20S%C3%BCd\n= sales,Vertrieb Süd')

  await page.getByRole('link', { name: 'Sign out' }).click()
  await isSignedOut(page)
  await picture(page, 'signed-out')
  assert.equal(page.url().replace(/\?state=.*/, ''), `${world.url}/.gatehouse/signed-out`)
  assert.deepEqual(world.provider.sessions(), [])

  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Who are you today?' }).waitFor()
})
