import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { BrowserContextOptions } from 'playwright-core'
import { startChromium } from '../support/chromium.ts'
import { startWorld } from '../support/world.ts'

const chromium = await startChromium()

/** The administration page on a telephone. Jane is signed in. */
async function openPage(
  t: TestContext,
  { clipboard = true, ...options }: BrowserContextOptions & { clipboard?: boolean },
) {
  const world = await startWorld(t, { settings: 'admin: { listen: "127.0.0.1:0", page: { show_claim: email } }' })
  await world.browser('jane').get(`${world.url}/echo`)
  const person = await chromium.person(t, { viewport: { width: 390, height: 844 }, ...options })
  await person.context.grantPermissions(['clipboard-read', 'clipboard-write'])
  // As in a browser that reads the page without TLS from another machine.
  if (!clipboard)
    await person.context.addInitScript('Navigator.prototype.__defineGetter__("clipboard", () => undefined)')
  const page = await person.tab()
  await page.goto(`http://127.0.0.1:${world.replicas[0]?.gateway.adminAddress?.port}/`)
  return { world, page, person, end: page.getByRole('button', { name: /^End the session of jane\.doe@/ }) }
}

for (const javaScriptEnabled of [true, false])
  test(`The page asks before it ends a session, ${javaScriptEnabled ? 'with' : 'without'} its script`, async (t) => {
    const { world, page, end } = await openPage(t, { javaScriptEnabled })
    const question = page.getByRole('dialog', { name: 'End the session of jane.doe@example.com?' })

    for (const leave of [
      () => page.keyboard.press('Escape'),
      () => page.keyboard.press('Enter'),
      () => question.getByRole('button', { name: 'Cancel' }).click(),
    ]) {
      await end.click()
      await question.getByText('the person is signed out there at once').waitFor()
      await leave()
      await question.waitFor({ state: 'hidden' })
    }
    assert.equal(world.provider.sessions().length, 1)

    await end.click()
    await question.getByRole('button', { name: 'End the session' }).click()
    await page.getByRole('heading', { name: 'The session has ended' }).waitFor()
    assert.equal(world.provider.sessions().length, 0)
  })

for (const clipboard of [true, false])
  test(`A short identifier is copied whole by keyboard, ${clipboard ? 'with' : 'without'} the clipboard API`, async (t) => {
    const { world, page, person } = await openPage(t, { clipboard })
    const sid = world.provider.sessions()[0]?.sid ?? ''

    await page.locator('#part-sessions summary').click()
    await page.getByRole('button', { name: 'Copy sid' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('status').getByText('Copied').waitFor()

    const other = await person.context.newPage()
    await other.goto(page.url())
    await other.getByRole('searchbox').focus()
    await other.keyboard.press('ControlOrMeta+V')
    assert.equal(await other.getByRole('searchbox').inputValue(), sid)
    assert.deepEqual(person.complaints, [])
  })

test('On a telephone, an opened session takes half of the screen, and no identifier breaks', async (t) => {
  const { page } = await openPage(t, {})
  await page.locator('#part-sessions summary').click()

  const { row, lines, width, person, rest } = (await page.evaluate(`({
    row: document.querySelector('#part-sessions tbody tr').clientHeight,
    lines: [...document.querySelectorAll('#part-sessions .id code')].map((code) => code.getClientRects().length),
    width: document.documentElement.scrollWidth,
    person: getComputedStyle(document.querySelector('#part-sessions th strong')),
    rest: getComputedStyle(document.querySelector('#part-sessions th code')),
  })`)) as { row: number; lines: number[]; width: number; person: Weight; rest: Weight }

  assert.ok(row < 422, `${row} px`)
  assert.ok(lines.length >= 3)
  assert.deepEqual(new Set(lines), new Set([1]))
  assert.equal(width, 390)
  assert.deepEqual([person.fontWeight, rest.fontWeight], ['600', '400'])
})

interface Weight {
  readonly fontWeight: string
}
