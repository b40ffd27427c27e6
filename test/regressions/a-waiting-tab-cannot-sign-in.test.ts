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

test('Each of 40 tabs that wait for the sign-in gets its page, in any order', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const locations = []
  for (let tab = 0; tab < 40; tab += 1) {
    const opened = await jane.send(`${world.url}/.gatehouse/sign-in?return_to=/echo%3Ftab=${tab}`)
    locations.push(String(opened.headers['location']))
  }

  for (const tab of [3, 0, 39, 20]) {
    const page = await jane.get(locations[tab] ?? '')
    assert.equal(page.url, `${world.url}/echo?tab=${tab}`)
  }
})

test('A callback of another browser begins no sign-in where 17 tabs wait', async (t) => {
  const world = await startWorld(t)
  const [jane, mallory] = [world.browser(), world.browser('samir')]
  const first = await mallory.send(`${world.url}/.gatehouse/sign-in`)
  const callback = await mallory.until(String(first.headers['location']), '/.gatehouse/callback')
  for (let tab = 0; tab < 17; tab += 1) await jane.send(`${world.url}/.gatehouse/sign-in`)

  const page = await jane.send(callback)

  assert.equal(page.status, 400)
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
