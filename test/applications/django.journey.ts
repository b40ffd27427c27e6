import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { installPython } from './installed.ts'
import { journeysOf } from './journeys.ts'
import { blockOf } from './pages.ts'
import { dataFolder, run, startProgram } from './programs.ts'

let programs = ''

async function startDjango(t: TestContext) {
  const cwd = dataFolder(t)
  const python = join(programs, 'python')
  run([python, '-m', 'django', 'startproject', 'site_project', '.'], { cwd })
  writeFileSync(join(cwd, 'gatehouse.py'), blockOf('django', 'python', 'class PersonMiddleware'))
  const settings = ['MIDDLEWARE', 'TEMPLATES'].map((setting) => blockOf('django', 'python', setting))
  appendFileSync(join(cwd, 'site_project', 'settings.py'), `\n${settings.join('\n')}`)
  const templates = join(cwd, 'templates', 'admin')
  mkdirSync(templates, { recursive: true })
  writeFileSync(join(templates, 'base_site.html'), blockOf('django', 'html'))
  run([python, 'manage.py', 'migrate', '--verbosity=0'], { cwd })
  const port = await freePort()
  return startProgram(
    t,
    [python, 'manage.py', 'runserver', '--noreload', `127.0.0.1:${port}`],
    new URL(`http://127.0.0.1:${port}/admin/login/`),
    { cwd },
  )
}

journeysOf({
  name: 'Django',
  page: 'django',
  install: () => (programs = installPython('django', 'django==5.2.*')),
  start: startDjango,
  home: '/admin/',
  showsPerson: (page, person) =>
    person === 'Jane Doe'
      ? page.locator('#user-tools').getByText('jane').waitFor()
      : // Zoë is not in the group of the administrators.
        page.getByText('You are authenticated as zoe').waitFor(),
  sessionCookies: /^sessionid$/,
  form: {
    fill: async (page, site, text) => {
      await page.goto(`${site.url}/admin/auth/group/add/`)
      await page.getByLabel('Name:').fill(text)
    },
    send: (page) => page.getByRole('button', { name: 'Save', exact: true }).click(),
    isSaved: async (page, _site, text) => {
      await page.getByText('was added successfully').waitFor()
      await page.getByRole('row').getByRole('link', { name: text }).waitFor()
    },
  },
  signOut: (page) => page.getByRole('button', { name: /log out/i }).click(),
  hasNotice: true,
})
