import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { packages, startDokuWiki } from './debian.ts'
import { installDebian } from './installed.ts'
import { journeysOf } from './journeys.ts'
import { blockOf } from './pages.ts'

/** With the plugin and the notice of the page. */
function start(t: TestContext) {
  return startDokuWiki(t, blockOf('dokuwiki', 'php', "$conf['authtype']"), ({ program, conf }) => {
    writeFileSync(join(conf, 'userscript.js'), blockOf('dokuwiki', 'js'))
    const plugin = join(program, 'lib', 'plugins', 'authgatehouse')
    mkdirSync(plugin)
    writeFileSync(join(plugin, 'auth.php'), blockOf('dokuwiki', 'php'))
    writeFileSync(join(plugin, 'plugin.info.txt'), blockOf('dokuwiki', 'text'))
  })
}

journeysOf({
  name: 'DokuWiki',
  page: 'dokuwiki',
  install: () => installDebian(packages.dokuwiki, ['dokuwiki', '0.0.20220731']),
  start,
  home: '/doku.php',
  showsPerson: (page, person) => page.getByText(`Logged in as: ${person}`).waitFor(),
  sessionCookies: /^D(?:oku)?W/,
  form: {
    fill: async (page, site, text) => {
      await page.goto(`${site.url}/doku.php?id=supplies&do=edit`)
      await page.locator('#wiki__text').fill(text)
    },
    send: (page) => page.locator('#edbtn__save').click(),
    isSaved: async (page, _site, text) => {
      // The token of the form belongs to the session of DokuWiki that has ended.
      await page.getByText('Security Token did not match').waitFor()
      await page.locator('#edbtn__save').click()
      await page.locator('#wiki__text').waitFor({ state: 'detached' })
      await page.getByText(text).waitFor()
    },
  },
  signOut: (page) => page.getByRole('link', { name: 'Log Out' }).first().click(),
  hasNotice: true,
})
