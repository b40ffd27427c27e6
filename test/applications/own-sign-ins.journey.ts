import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { startChromium } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { secrets } from '../support/world.ts'
import { packages, requestedAddress, startDokuWiki, startMediaWiki, startPhpMyAdmin, startWordPress } from './debian.ts'
import { installDebian, installNode, installPython, Missing } from './installed.ts'
import { type Application, dataFolder, run, startProgram } from './programs.ts'
import { type PersonName, startSite } from './site.ts'

/** Applications with their own sign-in alone: without a plugin, and without a header. */
interface Subject {
  readonly name: string
  /** YAML below `application_sign_in`, on one line. */
  readonly settings: string
  install(): void
  start(t: TestContext): Promise<Application>
  readonly home: string
  showsPerson(page: Page, person: PersonName): Promise<void>
  /** What its form has. */
  readonly form: string
}

const accounts: Readonly<Record<'jane' | 'zoe', string>> = { jane: 'orange battery 7!', zoe: 'zebra & crossing 9' }
const names = Object.keys(accounts) as (keyof typeof accounts)[]
const nameOf = (person: PersonName) => (person === 'Jane Doe' ? 'jane' : 'zoe')

const chromium = await startChromium({ isWhole: true })
const tomcat = '/usr/share/tomcat10'

async function startTomcat(t: TestContext): Promise<Application> {
  const base = dataFolder(t)
  for (const folder of ['conf', 'logs', 'temp', 'work', 'webapps/orders/WEB-INF'])
    mkdirSync(join(base, folder), { recursive: true })
  const port = await freePort()
  const users = Object.entries(accounts).map(
    ([name, password]) => `<user username="${name}" password="${password.replace('&', '&amp;')}" roles="staff"/>`,
  )
  writeFileSync(join(base, 'conf', 'tomcat-users.xml'), `<tomcat-users>${users.join('')}</tomcat-users>`)
  writeFileSync(
    join(base, 'conf', 'server.xml'),
    `<Server port="-1"><Service name="Catalina"><Connector port="${port}" address="127.0.0.1" />
    <Engine name="Catalina" defaultHost="localhost"><Realm className="org.apache.catalina.realm.MemoryRealm" />
    <Host name="localhost" appBase="webapps"><Valve className="org.apache.catalina.valves.RemoteIpValve" /></Host></Engine></Service></Server>`,
  )
  const webApp = (content: string) =>
    `<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">${content}</web-app>`
  const servlet = (name: string, type: string, pattern: string) =>
    `<servlet><servlet-name>${name}</servlet-name><servlet-class>org.apache.${type}</servlet-class></servlet>
    <servlet-mapping><servlet-name>${name}</servlet-name><url-pattern>${pattern}</url-pattern></servlet-mapping>`
  writeFileSync(
    join(base, 'conf', 'web.xml'),
    webApp(
      servlet('default', 'catalina.servlets.DefaultServlet', '/') +
        servlet('jsp', 'jasper.servlet.JspServlet', '*.jsp'),
    ),
  )
  const application = join(base, 'webapps', 'orders')
  writeFileSync(
    join(application, 'WEB-INF', 'web.xml'),
    webApp(`<security-constraint><web-resource-collection><web-resource-name>all</web-resource-name><url-pattern>/*</url-pattern>
      </web-resource-collection><auth-constraint><role-name>staff</role-name></auth-constraint></security-constraint>
      <login-config><auth-method>FORM</auth-method><form-login-config><form-login-page>/login.jsp</form-login-page>
      <form-error-page>/wrong.jsp</form-error-page></form-login-config></login-config>
      <security-role><role-name>staff</role-name></security-role>
      <session-config><tracking-mode>COOKIE</tracking-mode></session-config>`),
  )
  const page = (content: string) =>
    `<%@ page contentType="text/html; charset=utf-8" %><!doctype html><title>Orders</title>${content}`
  writeFileSync(join(application, 'index.jsp'), page('<h1>Orders of <%= request.getRemoteUser() %></h1>'))
  writeFileSync(join(application, 'wrong.jsp'), page('<p>The password is wrong.'))
  writeFileSync(
    join(application, 'login.jsp'),
    page(
      `<form method="post" action="j_security_check"><input name="j_username"><input type="password" name="j_password"><button>Sign in</button></form>`,
    ),
  )
  const classes = ['bootstrap.jar', 'tomcat-juli.jar'].map((name) => join(tomcat, 'bin', name)).join(':')
  const folders = [`-Dcatalina.home=${tomcat}`, `-Dcatalina.base=${base}`, `-Djava.io.tmpdir=${join(base, 'temp')}`]
  const main = 'org.apache.catalina.startup.Bootstrap'
  return startProgram(
    t,
    ['java', '-Xmx256m', '-cp', classes, ...folders, main, 'start'],
    new URL(`http://127.0.0.1:${port}/orders/index.jsp`),
  )
}

function phpMyAdmin(t: TestContext): Promise<Application> {
  const grants = Object.entries(accounts).map(
    ([name, password]) => `CREATE USER ${name}@localhost IDENTIFIED BY '${password}';`,
  )
  const server = `['auth_type' => 'cookie', 'host' => 'localhost']`
  return startPhpMyAdmin(t, {
    accounts: grants.join('\n'),
    config: `<?php\n$cfg['blowfish_secret'] = '${'x'.repeat(32)}';\n$cfg['Servers'][1] = ${server};`,
  })
}

function dokuWiki(t: TestContext): Promise<Application> {
  const settings = `$conf['useacl'] = 1;\n$conf['authtype'] = 'authplain';\n$conf['passcrypt'] = 'bcrypt';`
  return startDokuWiki(t, settings, ({ conf }) => {
    writeFileSync(join(conf, 'acl.auth.php'), '*  @ALL  0\n*  @user  8\n')
    writeFileSync(
      join(conf, 'users.auth.php'),
      Object.entries(accounts)
        .map(([name, password]) => `${name}:${bcrypt(password)}:Person ${name}:${name}@example.com:user\n`)
        .join(''),
    )
  })
}

function bcrypt(password: string): string {
  const { stdout } = spawnSync('php', ['-r', 'echo password_hash($argv[1], PASSWORD_BCRYPT);', password], {
    encoding: 'utf8',
  })
  return stdout
}

let python = ''

async function startDjango(t: TestContext): Promise<Application> {
  const cwd = dataFolder(t)
  const program = join(python, 'python')
  run([program, '-m', 'django', 'startproject', 'site_project', '.'], { cwd })
  appendFileSync(join(cwd, 'site_project', 'settings.py'), "\nALLOWED_HOSTS = ['*']\n")
  run([program, 'manage.py', 'migrate', '--verbosity=0'], { cwd })
  for (const [name, password] of Object.entries(accounts))
    run([program, 'manage.py', 'createsuperuser', '--noinput', '--username', name, '--email', `${name}@example.com`], {
      cwd,
      env: { DJANGO_SUPERUSER_PASSWORD: password },
    })
  const port = await freePort()
  const url = new URL(`http://127.0.0.1:${port}/admin/login/`)
  return startProgram(t, [program, 'manage.py', 'runserver', '--noreload', `127.0.0.1:${port}`], url, { cwd })
}

const wikiSettings = `$wgServer = ${requestedAddress};
$wgGroupPermissions['*']['read'] = false;
$wgPasswordAttemptThrottle = [];
`

function wordPress(t: TestContext): Promise<Application> {
  const people = Object.entries(accounts).map(
    ([name, password]) =>
      `wp_insert_user(['user_login' => '${name}', 'user_pass' => '${password}', 'display_name' => 'Person ${name}', 'role' => 'author']);`,
  )
  return startWordPress(t, {
    settings: `define('WP_HOME', ${requestedAddress}); define('WP_SITEURL', WP_HOME);`,
    afterwards: people.join('\n'),
  })
}

let node = ''

async function startNodeRed(t: TestContext): Promise<Application> {
  const folder = dataFolder(t)
  const port = await freePort()
  // bcryptjs, which comes with Node-RED.
  const hash = (password: string) =>
    spawnSync('node', ['-e', `console.log(require('bcryptjs').hashSync(process.argv[1], 8))`, password], {
      encoding: 'utf8',
      cwd: join(node, '..', 'node-red'),
    }).stdout.trim()
  const users = names.map((username) => ({ username, password: hash(accounts[username]), permissions: '*' }))
  // The editor opens a WebSocket, which asks the browser itself for a token.
  const anybody = { permissions: 'status.read' }
  const settings = { uiHost: '127.0.0.1', adminAuth: { type: 'credentials', users, default: anybody } }
  writeFileSync(join(folder, 'settings.js'), `module.exports = ${JSON.stringify(settings)}`)
  const options = ['-D', 'telemetry.enabled=false', '-D', 'editorTheme.tours=false', '--userDir', folder]
  return startProgram(
    t,
    [join(node, 'node-red'), '--port', String(port), ...options],
    new URL(`http://127.0.0.1:${port}/`),
  )
}

async function startTransmission(t: TestContext): Promise<Application> {
  const folder = dataFolder(t)
  const port = await freePort()
  const options = [
    '--foreground',
    '--config-dir',
    folder,
    '--download-dir',
    folder,
    '--no-portmap',
    '--no-dht',
    '--no-lpd',
    '--no-utp',
  ]
  const rpc = [
    '--rpc-bind-address',
    '127.0.0.1',
    '--port',
    String(port),
    '--auth',
    '--username',
    'jane',
    '--password',
    secrets.PHPMYADMIN_PASSWORD,
  ]
  return startProgram(
    t,
    ['transmission-daemon', ...options, ...rpc, '--peerport', String(await freePort())],
    new URL(`http://127.0.0.1:${port}/transmission/web/`),
  )
}

const subjects: readonly Subject[] = [
  {
    name: 'Tomcat',
    settings: 'preset: tomcat, page: /orders/index.jsp, action: /orders/j_security_check',
    install: () => installDebian({ tomcat10: `${tomcat}/bin/bootstrap.jar` }),
    start: startTomcat,
    home: '/orders/index.jsp',
    showsPerson: (page, person) => page.getByText(`Orders of ${nameOf(person)}`).waitFor(),
    form: 'j_password',
  },
  {
    name: 'phpMyAdmin',
    settings: 'preset: phpmyadmin',
    install: () => installDebian(packages.phpmyadmin),
    start: phpMyAdmin,
    home: '/',
    showsPerson: (page, person) => page.getByText(`User: ${nameOf(person)}@localhost`).waitFor(),
    form: 'pma_password',
  },
  {
    name: 'DokuWiki',
    settings: 'preset: dokuwiki',
    install: () => installDebian(packages.dokuwiki),
    start: dokuWiki,
    home: '/doku.php',
    showsPerson: (page, person) => page.getByText(`Logged in as: Person ${nameOf(person)}`).waitFor(),
    form: 'p',
  },
  {
    name: 'Django',
    settings: 'preset: django',
    install: () => (python = installPython('django', 'django==5.2.*')),
    start: startDjango,
    home: '/admin/',
    showsPerson: (page, person) => page.locator('#user-tools').getByText(nameOf(person)).waitFor(),
    form: 'password',
  },
  {
    name: 'MediaWiki',
    settings: 'preset: mediawiki',
    install: () => installDebian(packages.mediawiki),
    start: (t) => startMediaWiki(t, wikiSettings, accounts),
    home: '/index.php/Main_Page',
    showsPerson: (page, person) =>
      page.locator('#pt-userpage').getByText(nameOf(person), { exact: false }).waitFor({ state: 'attached' }),
    form: 'wpPassword',
  },
  {
    name: 'WordPress',
    settings: 'preset: wordpress',
    install: () => installDebian(packages.wordpress),
    start: wordPress,
    home: '/wp-admin/',
    showsPerson: (page, person) =>
      page
        .locator('#wp-admin-bar-my-account')
        .getByText(`Howdy, Person ${nameOf(person)}`)
        .waitFor(),
    form: 'pwd',
  },
  {
    name: 'Node-RED',
    settings: 'preset: node-red',
    install: () => (node = installNode('node-red', 'node-red@4')),
    start: startNodeRed,
    home: '/',
    showsPerson: async (page, person) => {
      await page.locator('.red-ui-palette-node').first().waitFor()
      await page.locator('#red-ui-header-button-user').click()
      await page.getByText(nameOf(person), { exact: true }).waitFor()
    },
    form: 'node-dialog-login-password',
  },
]

function whatIsMissing({ name, install }: Pick<Subject, 'name' | 'install'>): string | false {
  try {
    install()
    return false
  } catch (error) {
    if (error instanceof Missing) return `${name} ${error.message}`
    throw error
  }
}

/** Enters a password on the page of the gateway. */
async function enter(page: Page, password: string): Promise<void> {
  await page.getByLabel('Password at the application').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

for (const subject of subjects)
  test(
    `${subject.name}: each person is signed in without seeing its form`,
    { skip: whatIsMissing(subject) },
    async (t) => {
      const site = await startSite(
        t,
        await subject.start(t),
        '',
        'page: true, idle_timeout: 1h',
        `application_sign_in: { ${subject.settings} }`,
      )
      const person = await chromium.person(t)
      const page = await person.tab()
      const forms: string[] = []
      page.on(
        'domcontentloaded',
        () =>
          void page.content().then(
            (html) => {
              // The page of the gateway may have a field of that name.
              const isOurs = page.url().includes('/.gatehouse/')
              if (!isOurs && html.includes(`name="${subject.form}"`)) forms.push(page.url())
            },
            () => {},
          ),
      )
      const signIns = () =>
        site.replica.log
          .filter(({ message }) => message === 'application.sign_in')
          .map(({ fields }) => fields['outcome'])

      await page.goto(site.url + subject.home)
      await site.choose(page, 'Jane Doe')
      await enter(page, 'a wrong one')
      await page.getByText('The application has not accepted the password.').waitFor()
      assert.deepEqual(signIns(), ['refused'])
      await enter(page, accounts.jane)
      await subject.showsPerson(page, 'Jane Doe')
      assert.deepEqual(signIns(), ['refused', 'done'])

      await site.endAtProvider('Jane Doe')
      await page.goto(site.url + subject.home)
      await site.choose(page, 'Zoë Müller')
      await enter(page, accounts.zoe)
      await subject.showsPerson(page, 'Zoë Müller')
      assert.doesNotMatch(await page.locator('body').innerText(), /\bjane\b/i)

      await site.endAtProvider('Zoë Müller')
      await page.goto(site.url + subject.home)
      await site.choose(page, 'Jane Doe')
      await subject.showsPerson(page, 'Jane Doe')
      assert.deepEqual(signIns(), ['refused', 'done', 'done', 'done'])
      assert.deepEqual(forms, [])
    },
  )

const transmission = { 'transmission-daemon': '/usr/bin/transmission-daemon' }

test(
  'Transmission: one account for all with Basic',
  { skip: whatIsMissing({ name: 'Transmission', install: () => installDebian(transmission) }) },
  async (t) => {
    const account = 'username: { value: jane }, password: { env: PHPMYADMIN_PASSWORD }'
    const site = await startSite(
      t,
      await startTransmission(t),
      '',
      'idle_timeout: 1h',
      `application_sign_in: { preset: transmission, ${account} }`,
    )
    const page = await (await chromium.person(t)).tab()

    await site.signIn(page, '/transmission/web/')

    await page.locator('#toolbar, .mainwin').first().waitFor()
  },
)
