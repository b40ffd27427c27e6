import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePort } from '../support/free-port.ts'
import {
  atSignIn,
  dataFolder,
  endAtProvider,
  journeysWith,
  signIn,
  startGatewayFor,
  startProgram,
  tabOf,
} from './application.ts'
import { installNode } from './installed.ts'

let programs = ''

async function startNodeRed(t: TestContext) {
  const port = await freePort()
  const options = ['--port', String(port), '--userDir', dataFolder(t), '-D', 'uiHost=127.0.0.1']
  return startProgram(t, [join(programs, 'node-red'), ...options], new URL(`http://127.0.0.1:${port}/settings`))
}

journeysWith('Node-RED', () => (programs = installNode('node-red', 'node-red@4')), {
  'a person deploys a flow, and hears of it over the WebSocket, which ends with the session': async (t, chromium) => {
    const world = await startGatewayFor(t, await startNodeRed(t), 'node-red')
    const { page } = await tabOf(t, chromium)
    const opened = page.waitForEvent('websocket', { predicate: (socket) => socket.url().endsWith('/comms') })
    await signIn(page, world.url)
    const socket = await opened
    const heard = socket.waitForEvent('framereceived', {
      predicate: ({ payload }) => payload.includes('runtime-deploy'),
    })
    const flow = [{ id: 'f1', type: 'tab', label: 'Printers' }]
    const deployed = await page.evaluate(
      `fetch('/flows', { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(JSON.stringify(flow))} }).then((response) => response.status)`,
    )
    assert.equal(deployed, 204)
    await heard

    const closed = socket.waitForEvent('close')
    await endAtProvider(world)
    await closed

    await page.goto(world.url)
    await atSignIn(page)
  },

  'a person outside of the group is refused': async (t, chromium) => {
    const world = await startGatewayFor(t, await startNodeRed(t), 'node-red')
    const { page } = await tabOf(t, chromium)
    await signIn(page, world.url, 'Zoë Müller')

    const response = await page.goto(`${world.url}/flows`)

    assert.equal(response?.status(), 403)
  },
})
