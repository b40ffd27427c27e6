import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { installNode, installPython } from './installed.ts'
import { journeysOf } from './journeys.ts'
import { blockOf } from './pages.ts'
import { dataFolder, startProgram } from './programs.ts'

let programs = ''
let proxies = ''

/** Starts a JupyterHub with its proxy. Servers of people are its children, and end with it. */
async function startJupyterHub(t: TestContext) {
  const cwd = dataFolder(t)
  const templates = join(cwd, 'templates')
  mkdirSync(templates)
  writeFileSync(join(templates, 'page.html'), blockOf('jupyterhub', 'html'))
  const [port, hub, api] = [await freePort(), await freePort(), await freePort()]
  const settings = blockOf('jupyterhub', 'python')
    .replace('http://127.0.0.1:8000', `http://127.0.0.1:${port}`)
    .replace('/etc/jupyterhub/templates', templates)
  writeFileSync(
    join(cwd, 'jupyterhub_config.py'),
    `${settings}
c.JupyterHub.hub_port = ${hub}
c.ConfigurableHTTPProxy.api_url = 'http://127.0.0.1:${api}'
c.ConfigurableHTTPProxy.should_start = False
c.JupyterHub.spawner_class = 'simple'
c.SimpleLocalProcessSpawner.home_dir_template = '${cwd}/{username}'
c.LocalProcessSpawner.popen_kwargs = {'start_new_session': False}
c.Spawner.cmd = ['${join(programs, 'jupyterhub-singleuser')}']
c.Spawner.args = ['--allow-root']
c.Spawner.http_timeout = c.Spawner.start_timeout = 300
`,
  )
  const env = { CONFIGPROXY_AUTH_TOKEN: 'token-of-the-proxy' }
  const addresses = [`--ip=127.0.0.1`, `--port=${port}`, '--api-ip=127.0.0.1', `--api-port=${api}`]
  const proxy = [
    join(proxies, 'configurable-http-proxy'),
    ...addresses,
    `--default-target=http://127.0.0.1:${hub}`,
  ] as const
  await startProgram(t, proxy, new URL(`http://127.0.0.1:${api}/`), { env })
  const url = new URL(`http://127.0.0.1:${port}/hub/health`)
  return startProgram(t, [join(programs, 'jupyterhub')], url, { cwd, env })
}

journeysOf({
  name: 'JupyterHub',
  page: 'jupyterhub',
  install: () => {
    programs = installPython('jupyterhub', 'jupyterhub==6.*', 'jupyterlab==4.*')
    proxies = installNode('configurable-http-proxy', 'configurable-http-proxy@4')
  },
  start: startJupyterHub,
  home: '/hub/home',
  showsPerson: (page, person) =>
    page
      .locator('#login_widget')
      .getByText(person === 'Jane Doe' ? 'jane' : 'zoe')
      .waitFor(),
  use: async (page) => {
    await page.getByRole('button', { name: 'Start My Server' }).click()
    await page.waitForURL('**/user/jane/lab**', { timeout: 300_000 })
    await page.locator('.jp-LauncherCard').first().waitFor({ timeout: 120_000 })
  },
  sessionCookies: /^jupyterhub-/,
  script: {
    enter: async (page, site) => {
      await page.goto(`${site.url}/hub/token`)
      await page.locator('#token-note').fill('for the figures')
    },
    send: (page) => page.getByRole('button', { name: 'Request new API token' }).click(),
    request: ['POST', /^\/hub\/api\/users\/jane\/tokens\b/],
    saysNotSaved: async (page) => {
      await page.getByText('API request failed (401)').waitFor()
      assert.equal(await page.locator('#token-note').inputValue(), 'for the figures')
    },
  },
  signOut: (page) => page.locator('#logout').click(),
  hasNotice: true,
})
