import { appendFileSync, cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { installDebian } from './installed.ts'
import { journeysOf } from './journeys.ts'
import { blockOf } from './pages.ts'
import { dataFolder, run, startPhp } from './programs.ts'

/** Starts a MediaWiki with files and a database of its own. */
async function startMediaWiki(t: TestContext) {
  const folder = dataFolder(t)
  const [program, data] = [join(folder, 'mediawiki'), join(folder, 'data')]
  cpSync('/usr/share/mediawiki', program, {
    recursive: true,
    dereference: true,
    // A link that leads nowhere before MediaWiki is set up.
    filter: (path) => !path.endsWith('/LocalSettings.php'),
  })
  mkdirSync(data)
  const options = ['--dbtype', 'sqlite', '--dbpath', data, '--scriptpath', '', '--server', 'http://localhost']
  run([
    'php',
    join(program, 'maintenance', 'install.php'),
    ...options,
    '--pass',
    'an unused password',
    'Intranet',
    'Root',
  ])
  // The address of the test is known only when the gateway runs.
  const settings = blockOf('mediawiki', 'php').replace(
    "'https://wiki.example.com'",
    "'http://' . ($_SERVER['HTTP_HOST'] ?? 'localhost')",
  )
  appendFileSync(join(program, 'LocalSettings.php'), `\n${settings}`)
  return startPhp(t, program, '/index.php')
}

journeysOf({
  name: 'MediaWiki',
  page: 'mediawiki',
  install: () =>
    installDebian(
      {
        mediawiki: '/usr/share/mediawiki/index.php',
        'php-cli': '/usr/bin/php',
        'php-sqlite3': '/usr/share/doc/php-sqlite3',
      },
      ['mediawiki', '1.39'],
    ),
  start: startMediaWiki,
  home: '/index.php/Main_Page',
  showsPerson: (page, person) =>
    page
      .locator('#pt-userpage')
      .getByText(person === 'Jane Doe' ? 'Jane' : 'Zoe')
      .waitFor({ state: 'attached' }),
  sessionCookies: /_session$|User(?:ID|Name)$|Token$/,
  form: {
    fill: async (page, site, text) => {
      await page.goto(`${site.url}/index.php?title=Supplies&action=edit`)
      await page.locator('#wpTextbox1').fill(text)
    },
    send: (page) => page.locator('#wpSave').click(),
    isSaved: (page, _site, text) => page.locator('#mw-content-text').getByText(text).waitFor(),
  },
  signOut: async (page) => {
    const link = page.locator('#pt-logout a')
    // Some skins have it in a menu.
    if (!(await link.isVisible())) await page.locator('#p-personal-checkbox').check({ force: true })
    await link.click()
  },
  hasNotice: true,
})
