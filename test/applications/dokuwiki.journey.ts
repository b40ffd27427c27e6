import assert from 'node:assert/strict'
import { appendFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
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
import { installDebian } from './installed.ts'

/** Starts a DokuWiki with files of its own. */
async function startDokuWiki(t: TestContext) {
  const folder = dataFolder(t)
  const [program, conf, data] = [join(folder, 'dokuwiki'), join(folder, 'conf'), join(folder, 'data')]
  cpSync('/usr/share/dokuwiki', program, { recursive: true, dereference: true })
  cpSync('/etc/dokuwiki', conf, { recursive: true, dereference: true })
  cpSync('/var/lib/dokuwiki/data', data, { recursive: true, dereference: true })
  writeFileSync(join(program, 'inc', 'preload.php'), `<?php define('DOKU_CONF', '${conf}/');\n`)
  appendFileSync(join(conf, 'local.php'), `\n${blockOf('dokuwiki', 'php', 1)}\n$conf['savedir'] = '${data}';\n`)
  const plugin = join(program, 'lib', 'plugins', 'authgatehouse')
  mkdirSync(plugin)
  writeFileSync(join(plugin, 'auth.php'), blockOf('dokuwiki', 'php'))
  writeFileSync(join(plugin, 'plugin.info.txt'), blockOf('dokuwiki', 'text'))
  const address = `127.0.0.1:${await freePort()}`
  return startProgram(t, ['php', '-S', address, '-t', program], new URL(`http://${address}/doku.php`))
}

async function writePage(page: Page, id: string, text: string): Promise<void> {
  await page.goto(new URL(`/doku.php?id=${id}&do=edit`, page.url()).href)
  await page.locator('#wiki__text').fill(text)
  await page.locator('#edbtn__save').click()
  await page.getByText(text).waitFor()
}

const install = () => installDebian({ dokuwiki: '/usr/share/dokuwiki/doku.php', 'php-cli': '/usr/bin/php' })

journeysWith('DokuWiki', install, {
  'a person writes a page, and the next one in the same browser is somebody else': async (t, chromium) => {
    const world = await startGatewayFor(t, await startDokuWiki(t), 'dokuwiki')
    const { page, person } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/doku.php`)
    await writePage(page, 'printers', 'The printer on the second floor')
    assert.match(await page.locator('body').innerText(), /Logged in as: Jane Doe/)

    await endAtProvider(world)
    await page.reload()
    await atSignIn(page)
    await signIn(page, `${world.url}/doku.php`, 'Zoë Müller')

    const text = await page.locator('body').innerText()
    assert.match(text, /Logged in as: Zoë Müller/)
    assert.doesNotMatch(text, /Jane|printers/)
    assert.deepEqual(
      (await person.context.cookies()).filter(({ name }) => /^D(?:oku)?W/.test(name)),
      [],
    )
  },

  'the link of the application signs out of everything': async (t, chromium) => {
    const world = await startGatewayFor(t, await startDokuWiki(t), 'dokuwiki')
    const { page } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/doku.php`)

    await page.getByRole('link', { name: 'Log Out' }).first().click()
    await page.waitForURL(`${world.url}/.gatehouse/signed-out`)

    await page.goto(`${world.url}/doku.php`)
    await atSignIn(page)
  },
})
