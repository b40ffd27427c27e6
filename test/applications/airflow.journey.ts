import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import type { TestContext } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { installPython } from './installed.ts'
import { journeysOf, signedIn, type Subject } from './journeys.ts'
import { blockOf } from './pages.ts'
import { dataFolder, run, startProgram } from './programs.ts'

/** Both versions of Airflow have the settings of the same page. */
async function startAirflow(
  t: TestContext,
  programs: string,
  { server, path }: { readonly server: readonly string[]; readonly path: string },
) {
  const folder = dataFolder(t)
  mkdirSync(join(folder, 'dags'))
  writeFileSync(join(folder, 'webserver_config.py'), blockOf('airflow', 'python'))
  writeFileSync(
    join(folder, 'airflow.cfg'),
    `${blockOf('airflow', 'ini')}load_examples = False
[api_auth]
jwt_secret = a key for tests of Airflow, and for nothing else, as long as HMAC wants it
[webserver]
secret_key = a key for tests of Airflow, and for nothing else
`,
  )
  const env = { AIRFLOW_HOME: folder, PATH: `${programs}:${process.env['PATH']}` }
  const program = join(programs, 'airflow')
  run([program, 'db', 'migrate'], { env })
  const port = await freePort()
  const commandLine = [program, ...server, '--port', `${port}`, '--workers', '1'] as const
  return startProgram(t, commandLine, new URL(`http://127.0.0.1:${port}${path}`), { env })
}

const common = { page: 'airflow', sessionCookies: /^(?:session|_token)$/, hasNotice: false }

/** The first name, as the page of Flask-AppBuilder shows it to its user. */
const firstNames = { 'Jane Doe': 'Jane', 'Zoë Müller': 'Zoë' }

let airflow3 = ''

const subject: Subject = {
  ...common,
  name: 'Airflow 3.3',
  install: () =>
    (airflow3 = installPython('airflow-3', 'apache-airflow==3.3.2', 'apache-airflow-providers-fab==3.10.2')),
  start: (t) =>
    startAirflow(t, airflow3, {
      server: ['api-server', '--host', '127.0.0.1', '--proxy-headers'],
      path: '/api/v2/version',
    }),
  home: '/',
  showsPerson: async (page, person) => {
    await page.getByRole('button', { name: 'User' }).click()
    await page.getByText(person === 'Jane Doe' ? /^jane \(id: / : /^zoe \(id: /).waitFor()
  },
  use: async (page, site) => {
    await page.goto(`${site.url}/variables`)
    await page.getByRole('button', { name: 'Add Variable' }).click()
    await page.getByLabel('Key').fill('printer')
    await page.getByLabel('Value').fill('the one on the second floor')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('cell', { name: 'printer' }).waitFor()
  },
  signOut: async (page) => {
    await page.getByText('Logout').click()
    await page.getByRole('button', { name: 'Confirm' }).click()
  },
}

journeysOf(subject, {
  'the pages of Flask-AppBuilder show the next person too': async (t) => {
    const { site, page } = await signedIn(t, subject)
    const shows = async (person: keyof typeof firstNames) => {
      await page.goto(`${site.url}/auth/users/userinfo/`)
      await page.getByRole('cell', { name: firstNames[person], exact: true }).waitFor()
    }
    await shows('Jane Doe')

    await site.endAtProvider('Jane Doe')
    await site.signIn(page, subject.home, 'Zoë Müller')

    await shows('Zoë Müller')
  },

  'after the session has ended, a page leads to the sign-in and back': async (t) => {
    const { site, page } = await signedIn(t, subject)
    await page.goto(`${site.url}/variables`)
    await page.getByRole('button', { name: 'Add Variable' }).waitFor()

    await site.endAtProvider('Jane Doe')
    await page.getByRole('button', { name: 'Add Variable' }).click()
    await page.getByLabel('Key').fill('toner')
    await page.getByLabel('Value').fill('black')
    await page.getByRole('button', { name: 'Save' }).click()
    await site.choose(page, 'Jane Doe')

    await page.waitForURL((url) => url.pathname === '/variables')
    await page.getByRole('button', { name: 'Add Variable' }).waitFor()
  },
})

let airflow2 = ''

journeysOf({
  ...common,
  name: 'Airflow 2.11',
  install: () =>
    (airflow2 = installPython('airflow-2', 'apache-airflow==2.11.0', 'apache-airflow-providers-fab==1.5.3')),
  start: (t) => startAirflow(t, airflow2, { server: ['webserver', '--hostname', '127.0.0.1'], path: '/health' }),
  home: '/users/userinfo/',
  showsPerson: (page, person) => page.getByRole('cell', { name: firstNames[person], exact: true }).waitFor(),
  signOut: async (page) => {
    await page.getByText('JD').click()
    await page.getByText('Log Out').click()
  },
})
