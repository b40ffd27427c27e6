import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { installDebian } from './installed.ts'
import { journeysOf } from './journeys.ts'
import { blockOf } from './pages.ts'
import { copyWithLinked, dataFolder, startPhp } from './programs.ts'

/** Starts a DokuWiki with files of its own. */
async function startDokuWiki(t: TestContext) {
  const folder = dataFolder(t)
  const [program, conf, data] = [join(folder, 'dokuwiki'), join(folder, 'conf'), join(folder, 'data')]
  copyWithLinked('/usr/share/dokuwiki', program)
  copyWithLinked('/etc/dokuwiki', conf)
  copyWithLinked('/var/lib/dokuwiki/data', data)
  writeFileSync(join(program, 'inc', 'preload.php'), `<?php define('DOKU_CONF', '${conf}/');\n`)
  const settings = blockOf('dokuwiki', 'php', "$conf['authtype']")
  appendFileSync(join(conf, 'local.php'), `\n${settings}\n$conf['savedir'] = '${data}';\n`)
  writeFileSync(join(conf, 'userscript.js'), blockOf('dokuwiki', 'js'))
  const plugin = join(program, 'lib', 'plugins', 'authgatehouse')
  mkdirSync(plugin)
  writeFileSync(join(plugin, 'auth.php'), blockOf('dokuwiki', 'php'))
  writeFileSync(join(plugin, 'plugin.info.txt'), blockOf('dokuwiki', 'text'))
  writeFileSync(join(data, 'pages', 'start.txt'), '====== Intranet ======\n\nThe wiki of Example Ltd.\n')
  return startPhp(t, program, '/doku.php')
}

journeysOf({
  name: 'DokuWiki',
  page: 'dokuwiki',
  install: () =>
    installDebian({ dokuwiki: '/usr/share/dokuwiki/doku.php', 'php-cli': '/usr/bin/php' }, [
      'dokuwiki',
      '0.0.20220731',
    ]),
  start: startDokuWiki,
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
