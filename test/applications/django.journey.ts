import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
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

async function startDjango(t: TestContext) {
  const cwd = dataFolder(t)
  const python = join(programs, 'python')
  const run = (...args: readonly string[]) => {
    const { status, stderr } = spawnSync(python, args, { cwd, encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  }
  run('-m', 'django', 'startproject', 'site_project', '.')
  writeFileSync(join(cwd, 'gatehouse.py'), blockOf('django', 'python', 0))
  appendFileSync(join(cwd, 'site_project', 'settings.py'), `\n${blockOf('django', 'python', 1)}`)
  run('manage.py', 'migrate', '--verbosity=0')
  const port = await freePort()
  return startProgram(
    t,
    [python, 'manage.py', 'runserver', '--noreload', `127.0.0.1:${port}`],
    new URL(`http://127.0.0.1:${port}/admin/login/`),
    { cwd },
  )
}

journeysWith('Django', () => (programs = installPython('django', 'django~=5.2')), {
  'a person uses the admin site, and the next one in the same browser is somebody else': async (t, chromium) => {
    const world = await startGatewayFor(t, await startDjango(t), 'django')
    const { page, person } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/admin/`)
    assert.match(await page.locator('#user-tools').innerText(), /WELCOME, JANE/i)
    await page.getByRole('link', { name: 'Groups' }).first().click()
    await page
      .getByRole('link', { name: /Add group/i })
      .last()
      .click()
    await page.getByLabel('Name:').fill('Printers')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('was added successfully').waitFor()

    await endAtProvider(world)
    await page.goto(`${world.url}/admin/`)
    await atSignIn(page)
    await signIn(page, `${world.url}/admin/`, 'Zoë Müller')

    assert.doesNotMatch(await page.locator('body').innerText(), /jane/i)
    assert.match(await page.locator('body').innerText(), /zoe/i)
    assert.deepEqual(
      (await person.context.cookies()).filter(({ name }) => name === 'sessionid'),
      [],
    )
  },

  'the link of the application signs out of everything': async (t, chromium) => {
    const world = await startGatewayFor(t, await startDjango(t), 'django')
    const { page } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/admin/`)

    await page.getByRole('button', { name: /log out/i }).click()
    await page.waitForURL(`${world.url}/.gatehouse/signed-out`)

    await page.goto(`${world.url}/admin/`)
    await atSignIn(page)
  },
})
