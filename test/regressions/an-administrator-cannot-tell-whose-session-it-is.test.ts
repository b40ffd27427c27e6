import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startChromium } from '../support/chromium.ts'
import { startCommand } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { secrets, startWorld, type Replica, type World } from '../support/world.ts'

const chromium = await startChromium()

async function startWithPage(t: TestContext, page: string): Promise<{ readonly world: World; readonly admin: string }> {
  const adminPort = await freePort()
  const world = await startWorld(t, {
    store: 'redis',
    settings: `admin: { listen: "127.0.0.1:${adminPort}", page: ${page} }`,
  })
  await world.browser('jane').get(`${world.url}/echo`)
  return { world, admin: `http://127.0.0.1:${adminPort}/` }
}

test('The administration page shows the configured claim next to sub', async (t) => {
  const { admin } = await startWithPage(t, '{ show_claim: email }')

  const html = (await (await fetch(admin)).text()).replaceAll('<wbr>', '')

  assert.match(html, /<th scope="row" role="rowheader"><strong>jane\.doe@example\.com<\/strong>.*<code>jane<\/code>/)
  assert.match(html, /aria-label="End the session of jane\.doe@/)
})

test('The administration page shows sub for a person without the claim', async (t) => {
  const { admin } = await startWithPage(t, '{ show_claim: employee.number }')

  assert.match(
    await (await fetch(admin)).text(),
    /<th scope="row" role="rowheader"><strong>.*<code>jane<\/code>.*<\/strong><details/,
  )
})

test('The administration page escapes and truncates the value of the claim', async (t) => {
  const { admin } = await startWithPage(t, '{ show_claim: fields }')

  const html = (await (await fetch(admin)).text()).replaceAll('<wbr>', '')
  const [, value = ''] = /<th scope="row" role="rowheader"><strong>([^<]*)<\/strong>/.exec(html) ?? []

  assert.match(value, /^\{&quot;/)
  assert.ok([...value.replaceAll('&quot;', '"')].length <= 81, value)
})

test('gatehouse sessions prints the configured claim', async (t) => {
  const { world } = await startWithPage(t, '{ show_claim: email }')
  const { file } = world.replicas[0] as Replica
  const run = async (...args: readonly string[]) => {
    const command = startCommand(t, ['sessions', 'list', ...args, '--config', file], { env: secrets })
    await command.ended
    return command.out()
  }

  assert.match(await run(), /  sub  sid  person\n.*  jane  \S+  jane\.doe@\S+\n$/)
  const { person } = JSON.parse(await run('--format', 'json')) as { person: string }
  assert.match(person, /^jane\.doe@/)
})

test('At a width of 390 px, the button that ends a session is visible without horizontal scrolling', async (t) => {
  const { admin } = await startWithPage(t, '{ show_claim: email }')
  const page = await (await chromium.person(t, { viewport: { width: 390, height: 844 } })).tab()

  await page.goto(admin)
  const button = page.getByRole('button', { name: /^End the session of jane\.doe@/ })
  await button.waitFor()
  await button.scrollIntoViewIfNeeded()
  const box = await button.boundingBox()
  const isOnTop = await page.evaluate(`(() => {
    const button = document.querySelector('td.action > button')
    const { x, y, width, height } = button.getBoundingClientRect()
    return document.elementFromPoint(x + width / 2, y + height / 2) === button
  })()`)

  assert.ok(box !== null && box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box))
  assert.equal(isOnTop, true)
  await button.click()
  await page.getByRole('button', { name: 'End the session', exact: true }).click()
  await page.getByRole('heading', { name: 'The session has ended' }).waitFor()
})
