import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { freePort } from '../support/free-port.ts'
import {
  atSignIn,
  blockOf,
  dataFolder,
  endAtProvider,
  journeysWith,
  signIn,
  startGatewayFor,
  startProgram,
  tabOf,
} from './application.ts'
import { installPython } from './installed.ts'

let programs = ''

async function startJupyterLab(t: TestContext) {
  const folder = dataFolder(t)
  writeFileSync(join(folder, 'jupyter_server_config.py'), blockOf('jupyterlab', 'python'))
  const port = await freePort()
  const options = ['--no-browser', '--allow-root', `--ServerApp.port=${port}`, `--ServerApp.root_dir=${folder}`]
  const env = { JUPYTER_CONFIG_DIR: folder, JUPYTER_DATA_DIR: folder, JUPYTER_RUNTIME_DIR: folder, IPYTHONDIR: folder }
  const url = new URL(`http://127.0.0.1:${port}/api`)
  return startProgram(t, [join(programs, 'jupyter-lab'), ...options], url, { env })
}

/** The name of the person, as JupyterLab knows it. */
function nameAt(page: Page): Promise<unknown> {
  return page.evaluate("fetch('/api/me').then((response) => response.json()).then(({ identity }) => identity.name)")
}

journeysWith('JupyterLab', () => (programs = installPython('jupyterlab', 'jupyterlab~=4.0')), {
  'a person runs code over a WebSocket, which ends with the session': async (t, chromium) => {
    const world = await startGatewayFor(t, await startJupyterLab(t), 'jupyterlab')
    const { page } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/lab`)
    await page.locator('.jp-LauncherCard[data-category="Notebook"]').first().click()
    const cell = page.locator('.jp-Notebook .jp-CodeCell .cm-content').first()
    await cell.click()
    await page.keyboard.type('print(6 * 7, "from the kernel")')
    await page.keyboard.press('Shift+Enter')
    // The kernel is a process that starts for the first time.
    await page.getByText('42 from the kernel').waitFor({ timeout: 300_000 })
    assert.equal(await nameAt(page), 'Jane Doe')

    await endAtProvider(world)

    const status = await page.evaluate("fetch('/api/kernels').then((response) => response.status)")
    assert.equal(status, 401)
    await page.goto(`${world.url}/lab`)
    await atSignIn(page)
    await signIn(page, `${world.url}/lab`, 'Zoë Müller')
    assert.equal(await nameAt(page), 'Zoë Müller')
  },

  'the link of the application signs out of everything': async (t, chromium) => {
    const world = await startGatewayFor(t, await startJupyterLab(t), 'jupyterlab')
    const { page } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/tree`)

    await page.evaluate("location.href = '/logout'")
    await page.waitForURL(`${world.url}/.gatehouse/signed-out`)

    await page.goto(`${world.url}/lab`)
    await atSignIn(page)
  },
})
