import { packages, requestedAddress, startMediaWiki } from './debian.ts'
import { installDebian } from './installed.ts'
import { journeysOf } from './journeys.ts'
import { blockOf } from './pages.ts'

journeysOf({
  name: 'MediaWiki',
  page: 'mediawiki',
  install: () => installDebian(packages.mediawiki, ['mediawiki', '1.39']),
  start: (t) => startMediaWiki(t, blockOf('mediawiki', 'php').replace("'https://wiki.example.com'", requestedAddress)),
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
