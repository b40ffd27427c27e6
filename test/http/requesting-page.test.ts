import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isFromSite, originsAt, type RequestingPage } from '../../src/http/requesting-page.ts'

const ours = 'https://orders.example.com'
const other = 'https://evil.example'

/** What a browser says about the page, by how much it says. */
const pages: Readonly<Record<string, RequestingPage>> = {
  'of this origin': { secFetchSite: 'same-origin', origin: other, referer: other },
  'typed or bookmarked': { secFetchSite: 'none' },
  'of a neighbor': { secFetchSite: 'same-site', origin: ours, referer: ours },
  'of another site': { secFetchSite: 'cross-site', origin: ours, referer: ours },
  'of an unknown kind': { secFetchSite: '', origin: ours, referer: ours },
  'with our Origin': { secFetchSite: undefined, origin: ours, referer: other },
  'with another Origin': { secFetchSite: undefined, origin: other, referer: ours },
  'with a hidden Origin': { secFetchSite: undefined, origin: 'null' },
  'with our Referer alone': { secFetchSite: undefined, referer: `${ours}/orders?page=2` },
  'with another Referer alone': { secFetchSite: undefined, referer: `${other}/?${ours}` },
  'with a Referer that is no URL': { secFetchSite: undefined, referer: 'orders.example.com' },
  'with a hidden Origin and our Referer': { secFetchSite: undefined, origin: 'null', referer: `${ours}/` },
  'with a hidden Origin and another Referer': { secFetchSite: undefined, origin: 'null', referer: `${other}/` },
  'without any of the fields': { secFetchSite: undefined },
}

/** The columns are the pages, in their order above. `+`: the request passes. */
const table = {
  application: '++...+..+++..+',
  endpoint: '++...+..+..+.+',
  endpoint_form: '+....+..+..+.+',
  frame: '+....+........',
  kept_form: '+....+........',
  clear_cookies: '+....+..+++..+',
  admin_page: '++...+..+++..+',
  admin_form: '+....+........',
  admin_json: '+....+..+++..+',
  admin_stream: '+....+..+++..+',
} as const

for (const [check, expected] of Object.entries(table) as [keyof typeof table, string][])
  test(`Which pages may make a request, for the check "${check}"`, () => {
    const passes = Object.entries(pages).map(([name, page]) => [name, isFromSite(check, page, [ours])])

    assert.deepEqual(
      passes,
      Object.keys(pages).map((name, at) => [name, expected[at] === '+']),
    )
  })

test('The origins of an upstream are its own and that of the requested host, with its own scheme', () => {
  assert.deepEqual(originsAt(new URL(`${ours}/path`), 'stock.example.com:8443'), [
    ours,
    'https://stock.example.com:8443',
  ])
})
