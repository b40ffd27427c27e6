import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { picture } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { installDebian } from './installed.ts'
import { journeysOf, signedIn, type Subject } from './journeys.ts'
import { blockOf } from './pages.ts'
import { dataFolder, startProgram } from './programs.ts'

async function startCockpit(t: TestContext) {
  const folder = dataFolder(t)
  mkdirSync(join(folder, 'cockpit'))
  // The address of the test is the one of the request, so that `Origins` is not needed.
  const settings = blockOf('cockpit', 'ini').replace(/^Origins.*\n/m, '')
  writeFileSync(join(folder, 'cockpit', 'cockpit.conf'), settings)
  const port = String(await freePort())
  const [program = '', ...options] = blockOf('cockpit', 'sh').trim().replace('9090', port).split(' ')
  const url = new URL(`http://127.0.0.1:${port}/ping`)
  return startProgram(t, [program, ...options], url, { env: { XDG_CONFIG_DIRS: folder, HOME: folder } })
}

const subject: Subject = {
  name: 'Cockpit',
  page: 'cockpit',
  install: () =>
    installDebian(
      {
        'cockpit-ws': '/usr/lib/cockpit/cockpit-ws',
        'cockpit-bridge': '/usr/bin/cockpit-bridge',
        'cockpit-system': '/usr/share/cockpit/shell',
      },
      ['cockpit-ws', '287'],
    ),
  start: startCockpit,
  home: '/',
  showsPerson: (page, person) =>
    person === 'Jane Doe'
      ? page.getByRole('link', { name: 'Overview' }).first().waitFor()
      : // Zoë is not in the group of the administrators.
        page.getByText('You do not have access to this page.').waitFor(),
  use: async (page, site) => {
    await page.goto(`${site.url}/system/terminal`)
    const terminal = page.frameLocator('iframe[name$="/system/terminal"]').locator('.xterm')
    await terminal.click({ timeout: 120_000 })
    await page.keyboard.type('echo $((6 * 7)) from the terminal\n')
    await terminal.getByText('42 from the terminal').first().waitFor()
  },
  sessionCookies: /cockpit/,
  hasNotice: false,
}

journeysOf(subject, {
  'the WebSocket ends with the session': async (t) => {
    const { site, page } = await signedIn(t, subject)
    const opened = page.waitForEvent('websocket', { predicate: (socket) => socket.url().endsWith('/cockpit/socket') })
    // The picture ends above the ID of the machine.
    await page.setViewportSize({ width: 1000, height: 600 })
    await page.goto(site.url)
    const socket = await opened
    await subject.showsPerson(page, 'Jane Doe')
    await picture(page, 'applications/cockpit', { type: 'jpeg', quality: 55 })

    const closed = socket.waitForEvent('close')
    await site.endAtProvider('Jane Doe')
    await closed
    await page.getByText('Disconnected').first().waitFor()
  },
})
