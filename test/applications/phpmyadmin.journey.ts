import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { secrets } from '../support/world.ts'
import { packages, startPhpMyAdmin } from './debian.ts'
import { installDebian } from './installed.ts'
import { journeysOf } from './journeys.ts'
import { blockOf } from './pages.ts'
import type { Site } from './site.ts'

/** An account for each person, with the settings of the page. */
function start(t: TestContext) {
  const accounts = blockOf('phpmyadmin', 'text').replace(
    'the value of PHPMYADMIN_PASSWORD',
    secrets.PHPMYADMIN_PASSWORD,
  )
  return startPhpMyAdmin(t, {
    accounts: accounts + accounts.replaceAll('jane', 'zoe'),
    config: `${blockOf('phpmyadmin', 'php')}\n$cfg['CodemirrorEnable'] = false;`,
    footer: blockOf('phpmyadmin', 'html'),
  })
}

async function enterQuery(page: Page, site: Site, query: string): Promise<void> {
  await page.goto(`${site.url}/index.php?route=/server/sql`)
  await page.locator('#sqlquery').fill(query)
}

const send = (page: Page) => page.locator('#button_submit_query').click()

journeysOf({
  name: 'phpMyAdmin',
  page: 'phpmyadmin',
  install: () => installDebian(packages.phpmyadmin, ['phpmyadmin', '5.2']),
  start,
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
    // phpMyAdmin sends other requests by itself.
    request: ['POST', /^\/index\.php\?route=\/import\b/],
    saysNotSaved: async (page) => {
      await page.getByText('Error code: 401').waitFor()
      assert.equal(await page.locator('#sqlquery').inputValue(), 'SELECT 6 * 7')
    },
  },
  signOut: (page) => page.getByRole('link', { name: 'Log out' }).click(),
  hasNotice: true,
})
