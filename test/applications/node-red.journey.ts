import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { freePort } from '../support/free-port.ts'
import { installNode } from './installed.ts'
import { journeysOf, signedIn, type Subject } from './journeys.ts'
import { blockOf } from './pages.ts'
import { dataFolder, startProgram } from './programs.ts'

let programs = ''

async function startNodeRed(t: TestContext) {
  const folder = dataFolder(t)
  const port = await freePort()
  writeFileSync(join(folder, 'settings.js'), blockOf('node-red', 'js', 'module.exports'))
  writeFileSync(join(folder, 'notice.js'), blockOf('node-red', 'js', 'document'))
  // No dialogs at the first start.
  const options = ['-D', 'telemetry.enabled=false', '-D', 'editorTheme.tours=false', '--userDir', folder]
  return startProgram(
    t,
    [join(programs, 'node-red'), '--port', String(port), ...options],
    new URL(`http://127.0.0.1:${port}/settings`),
  )
}

const deployButton = (page: Page) => page.locator('#red-ui-header-button-deploy')

/** Adds a node to the flow, so that there is something to deploy. */
async function addNode(page: Page): Promise<void> {
  await page.evaluate(`RED.actions.invoke('core:add-flow')`)
  await page.locator('#red-ui-header-button-deploy:not(.disabled)').waitFor()
}

const subject: Subject = {
  name: 'Node-RED',
  page: 'node-red',
  install: () => (programs = installNode('node-red', 'node-red@4')),
  start: startNodeRed,
  home: '/',
  showsPerson: async (page, person) => {
    // Zoë may not edit flows.
    if (person !== 'Jane Doe') return page.getByText('You do not have access to this page.').waitFor()
    await page.locator('.red-ui-palette-node').first().waitFor()
    // Node-RED forgets changes that are made while it loads the flows.
    await page.locator('#red-ui-loading-progress').waitFor({ state: 'hidden' })
  },
  script: {
    enter: addNode,
    send: (page) => deployButton(page).click(),
    request: ['POST', /^\/flows\b/],
    saysNotSaved: async (page) => {
      await page.getByText('Deploy failed: not authorized').waitFor()
      await page.locator('#red-ui-header-button-deploy:not(.disabled)').waitFor()
    },
  },
  hasNotice: true,
}

journeysOf(subject, {
  'a person deploys a flow, and hears of it over the WebSocket, which ends with the session': async (t) => {
    const { site, page } = await signedIn(t, subject)
    const opened = page.waitForEvent('websocket', { predicate: (socket) => socket.url().endsWith('/comms') })
    await page.goto(site.url)
    const socket = await opened
    await subject.showsPerson(page, 'Jane Doe')
    const heard = socket.waitForEvent('framereceived', {
      predicate: ({ payload }) => payload.includes('runtime-deploy'),
    })
    await addNode(page)
    await deployButton(page).click()
    await heard

    const closed = socket.waitForEvent('close')
    await site.endAtProvider('Jane Doe')
    await closed
  },

  'a person outside of the group is refused': async (t) => {
    const { site, page } = await signedIn(t, subject)
    await site.endAtProvider('Jane Doe')
    await site.signIn(page, subject.home, 'Zoë Müller')

    const response = await page.goto(`${site.url}/flows`)

    assert.equal(response?.status(), 403)
  },
})
