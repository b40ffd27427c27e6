import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { secrets } from '../support/world.ts'
import { installDebian } from './installed.ts'
import { journeysOf } from './journeys.ts'
import { blockOf } from './pages.ts'
import { copyWithLinked, dataFolder, run, startMariaDb, startPhp } from './programs.ts'
import type { Site } from './site.ts'

/** Starts a phpMyAdmin with files of its own, and a MariaDB with an account for each person. */
async function startPhpMyAdmin(t: TestContext) {
  const socket = await startMariaDb(t, 'shop')
  const accounts = blockOf('phpmyadmin', 'text').replace(
    'the value of PHPMYADMIN_PASSWORD',
    secrets.PHPMYADMIN_PASSWORD,
  )
  run(['mariadb', '--no-defaults', `--socket=${socket}`, '-uroot'], {
    input: accounts + accounts.replaceAll('jane', 'zoe'),
  })
  const folder = dataFolder(t)
  const [program, temporary] = [join(folder, 'phpmyadmin'), join(folder, 'tmp')]
  copyWithLinked('/usr/share/phpmyadmin', program)
  mkdirSync(temporary)
  const vendor = join(program, 'libraries', 'vendor_config.php')
  writeFileSync(
    vendor,
    readFileSync(vendor, 'utf8')
      .replace('/etc/phpmyadmin/config.inc.php', join(program, 'config.inc.php'))
      .replace('/var/lib/phpmyadmin/tmp/', `${temporary}/`),
  )
  const settings = `$cfg['Servers'][1]['socket'] = '${socket}';\n$cfg['CodemirrorEnable'] = false;\n`
  writeFileSync(join(program, 'config.inc.php'), `${blockOf('phpmyadmin', 'php')}\n${settings}`)
  writeFileSync(join(program, 'config.footer.inc.php'), blockOf('phpmyadmin', 'html'))
  return startPhp(t, program, '/favicon.ico')
}

async function enterQuery(page: Page, site: Site, query: string): Promise<void> {
  await page.goto(`${site.url}/index.php?route=/server/sql`)
  await page.locator('#sqlquery').fill(query)
}

const send = (page: Page) => page.locator('#button_submit_query').click()

journeysOf({
  name: 'phpMyAdmin',
  page: 'phpmyadmin',
  install: () =>
    installDebian(
      {
        phpmyadmin: '/usr/share/phpmyadmin/index.php',
        'php-cli': '/usr/bin/php',
        'mariadb-server': '/usr/sbin/mariadbd',
      },
      ['phpmyadmin', '5.2'],
    ),
  start: startPhpMyAdmin,
  home: '/',
  showsPerson: (page, person) => page.getByText(`User: ${person === 'Jane Doe' ? 'jane' : 'zoe'}@localhost`).waitFor(),
  use: async (page, site) => {
    await enterQuery(page, site, 'SELECT CURRENT_USER()')
    await send(page)
    await page.locator('.table_results').getByText('jane@localhost').waitFor()
  },
  sessionCookies: /^(?:phpMyAdmin|pma(?:User|Auth))/,
  script: {
    enter: (page, site) => enterQuery(page, site, 'SELECT 6 * 7'),
    send,
    request: ['POST', /^\/index\.php$/],
    saysNotSaved: async (page) => {
      await page.getByText('Error code: 401').waitFor()
      assert.equal(await page.locator('#sqlquery').inputValue(), 'SELECT 6 * 7')
    },
  },
  signOut: (page) => page.getByRole('link', { name: 'Log out' }).click(),
  hasNotice: true,
})
