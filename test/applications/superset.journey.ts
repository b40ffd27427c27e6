import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { installPython } from './installed.ts'
import { journeysOf, signedIn, type Subject } from './journeys.ts'
import { blockOf } from './pages.ts'
import { dataFolder, run, startProgram } from './programs.ts'

let programs = ''

/** A folder with the settings of the page. `database`: a copy of it is the database. */
function configure(folder: string, database?: string) {
  const templates = join(folder, 'templates')
  mkdirSync(templates, { recursive: true })
  writeFileSync(join(templates, 'tail_js_custom_extra.html'), blockOf('superset', 'html'))
  const file = join(folder, 'superset.db')
  if (database !== undefined) copyFileSync(database, file)
  const config = join(folder, 'superset_config.py')
  writeFileSync(
    config,
    `${blockOf('superset', 'python').replace('/etc/superset/templates', templates)}
SECRET_KEY = 'a key for tests of Superset, and for nothing else'
SQLALCHEMY_DATABASE_URI = 'sqlite:///${file}?check_same_thread=false'
`,
  )
  return { file, env: { SUPERSET_CONFIG_PATH: config, SUPERSET_HOME: folder, FLASK_APP: 'superset.app:create_app()' } }
}

const shared = dataFolder({ after })

/** A database with the roles of Superset. It takes a minute, so all journeys copy the same one. */
function database(): string {
  if (existsSync(join(shared, 'superset.db'))) return join(shared, 'superset.db')
  const { file, env } = configure(shared)
  for (const command of [['db', 'upgrade'], ['init']]) run([join(programs, 'superset'), ...command], { env })
  return file
}

async function startSuperset(t: TestContext) {
  const { env } = configure(dataFolder(t), database())
  const address = `127.0.0.1:${await freePort()}`
  const options = ['--workers=1', '--threads=8', '--timeout=600', `--bind=${address}`]
  const commandLine = [join(programs, 'gunicorn'), ...options, 'superset.app:create_app()'] as const
  return startProgram(t, commandLine, new URL(`http://${address}/health`), { env })
}

const templates = '/csstemplatemodelview/list/'

const subject: Subject = {
  name: 'Superset',
  page: 'superset',
  install: () =>
    (programs = installPython(
      'superset',
      ...['apache-superset==6.1.0', 'flask-caching<2.4', 'rich', 'cachetools', 'gunicorn'],
    )),
  start: startSuperset,
  home: '/user_info/',
  showsPerson: (page, person) =>
    page.getByText(person === 'Jane Doe' ? 'jane.doe@example.com' : 'zoe.mueller@example.com').waitFor(),
  use: async (page, site) => {
    await page.goto(site.url + templates)
    await page.getByRole('button', { name: 'CSS template' }).last().click()
    await page.locator('.ant-modal .ace_editor').click()
    await page.keyboard.type('h1 { color: green }')
    await page.locator('.ant-modal input[name=template_name]').fill('Green')
    await page.locator('.ant-modal').getByRole('button', { name: 'Add' }).click()
    await page.getByRole('cell', { name: 'Green' }).first().waitFor()
  },
  sessionCookies: /^session$/,
  signOut: async (page) => {
    await page.getByText('Settings').hover()
    await page.getByRole('menuitem', { name: 'Logout' }).click()
  },
  hasNotice: true,
}

journeysOf(subject, {
  'after the session has ended, a page leads to the sign-in and back': async (t) => {
    const { site, page } = await signedIn(t, subject)
    await page.goto(site.url + templates)
    await page.getByText('No Data').waitFor()

    await site.endAtProvider('Jane Doe')
    await page.getByRole('columnheader', { name: 'Name' }).first().click()
    await site.choose(page, 'Jane Doe')

    await page.waitForURL((url) => url.pathname === templates)
    await page.getByText('No Data').waitFor()
  },
})
