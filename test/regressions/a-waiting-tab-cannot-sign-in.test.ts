import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startChromium } from '../support/chromium.ts'
import { startWorld } from '../support/world.ts'

const chromium = await startChromium()

test('The first of 17 tabs that wait for the sign-in gets its page', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const opened = []
  for (let tab = 0; tab < 17; tab += 1)
    opened.push(await jane.send(`${world.url}/.gatehouse/sign-in?return_to=/echo%3Ftab=${tab}`))

  const page = await jane.get(String(opened[0]?.headers['location']))

  assert.equal(page.status, 200)
  assert.equal(page.url, `${world.url}/echo?tab=0`)
})

test('A sign-in that began again does not begin again a second time', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const first = await jane.send(`${world.url}/.gatehouse/sign-in`)
  const callback = await jane.until(String(first.headers['location']), '/.gatehouse/callback')
  /** Only the cookie of another sign-in is left. */
  const forget = async () => {
    jane.cookies.clear()
    await jane.send(`${world.url}/.gatehouse/sign-in`)
  }
  await forget()
  const again = await jane.send(callback)
  assert.match(String(again.headers['location']), /\/oauth\/authorize\?/)
  const second = await jane.until(String(again.headers['location']), '/.gatehouse/callback')
  await forget()

  const page = await jane.send(second)

  assert.equal(page.status, 400)
  assert.match(page.body, /Your browser did not send the cookie of this sign-in\./)
})

test('The page after a sign-in without its cookie says that a cookie is missing', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const first = await jane.send(`${world.url}/.gatehouse/sign-in`)
  const callback = await jane.until(String(first.headers['location']), '/.gatehouse/callback')

  const page = await world.browser().send(callback)

  assert.equal(page.status, 400)
  assert.match(page.body, /Allow cookies for this site/)
  const failed = world.replicas[0]?.log.find(({ message }) => message === 'sign_in.failed')
  assert.equal(failed?.fields['code'], 'ERR_SIGN_IN_COOKIE')
})

test('After Cancel at the provider, the page does not say that the sign-in service rejected something', async (t) => {
  const world = await startWorld(t)
  const page = await (await chromium.person(t)).tab()
  await page.goto(world.url)

  await page.getByRole('button', { name: 'Cancel' }).click()

  await page.getByText('The sign-in was stopped before its end, or your account may not sign in here.').waitFor()
})
