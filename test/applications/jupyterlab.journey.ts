import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import { installPython } from './installed.ts'
import { journeysOf } from './journeys.ts'
import { blockOf } from './pages.ts'
import { dataFolder, startProgram } from './programs.ts'

let programs = ''

async function startJupyterLab(t: TestContext) {
  const folder = dataFolder(t)
  writeFileSync(join(folder, 'jupyter_server_config.py'), blockOf('jupyterlab', 'python'))
  const files = join(folder, 'files')
  mkdirSync(files)
  writeFileSync(join(files, 'notes.md'), '# Notes')
  // Otherwise, JupyterLab asks at the first start whether it may fetch news.
  const notifications = join(folder, 'lab', 'user-settings', '@jupyterlab', 'apputils-extension')
  mkdirSync(notifications, { recursive: true })
  writeFileSync(join(notifications, 'notification.jupyterlab-settings'), '{ "fetchNews": "false" }')
  const extension = join(folder, 'labextensions', 'gatehouse-notice')
  mkdirSync(join(extension, 'static'), { recursive: true })
  writeFileSync(join(extension, 'package.json'), blockOf('jupyterlab', 'json'))
  writeFileSync(join(extension, 'static', 'notice.js'), blockOf('jupyterlab', 'js'))
  const port = await freePort()
  const options = ['--no-browser', '--allow-root', `--ServerApp.port=${port}`, `--ServerApp.root_dir=${files}`]
  const env = { JUPYTER_CONFIG_DIR: folder, JUPYTER_DATA_DIR: folder, JUPYTER_RUNTIME_DIR: folder, IPYTHONDIR: folder }
  const url = new URL(`http://127.0.0.1:${port}/api`)
  return startProgram(t, [join(programs, 'jupyter-lab'), ...options], url, { env })
}

/** Opens a notebook, and runs code in its first cell. */
async function runCode(page: Page): Promise<void> {
  await page.locator('.jp-LauncherCard[data-category="Notebook"]').first().click({ timeout: 120_000 })
  const cell = page.locator('.jp-Notebook .jp-CodeCell .cm-content').first()
  await cell.click()
  await page.keyboard.insertText('print(6 * 7, "from the kernel")')
  // JupyterLab ignores the button until the kernel, a process of its own, is connected.
  await until('the kernel has run the code', async () => {
    await cell.click()
    await page.locator('[data-command="notebook:run-cell-and-select-next"]').first().click()
    const output = page.locator('.jp-OutputArea-output').getByText('42 from the kernel').first()
    return output.waitFor({ timeout: 5_000 }).then(
      () => true,
      () => false,
    )
  })
}

journeysOf({
  name: 'JupyterLab',
  page: 'jupyterlab',
  install: () => (programs = installPython('jupyterlab', 'jupyterlab==4.*')),
  start: startJupyterLab,
  home: '/lab',
  showsPerson: async (page, person) => {
    await page.locator('.jp-LauncherCard, .jp-Notebook').first().waitFor({ timeout: 120_000 })
    await page.waitForFunction(
      `fetch('/api/me').then((response) => response.json()).then(({ identity }) => identity.name === '${person}')`,
    )
  },
  use: runCode,
  script: {
    enter: async (page, site) => {
      await page.goto(`${site.url}/lab/tree/notes.md`)
      // Not a notebook: JupyterLab shows one dialog at a time, and the end of its kernel has one.
      await page.locator('.jp-FileEditor .cm-content').click({ timeout: 120_000 })
      await page.keyboard.insertText('not saved yet')
      await page.locator('.jp-FileEditor .cm-content').getByText('not saved yet').waitFor()
    },
    send: (page) => page.keyboard.press('Control+s'),
    // Before it saves, JupyterLab asks whether the file has changed.
    request: ['GET', /^\/api\/contents\/notes/],
    saysNotSaved: async (page) => {
      await page.getByText('File Save Error').first().waitFor()
      await page.locator('.jp-FileEditor .cm-content').getByText('not saved yet').waitFor()
    },
  },
  signOut: (page) => page.evaluate("location.href = '/logout'"),
  hasNotice: true,
})
