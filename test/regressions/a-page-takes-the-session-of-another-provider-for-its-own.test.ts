import assert from 'node:assert/strict'
import { test } from 'node:test'
import { choose } from '../pages/support.ts'
import { httpUpstream } from '../proxy/support.ts'
import { Browser } from '../support/browser.ts'
import { startChromium } from '../support/chromium.ts'
import { separate, twoProviders } from '../support/two-providers.ts'

const chromium = await startChromium()

test('Pages of two applications of one origin learn of the sessions at their own providers only', async (t) => {
  const { port } = await httpUpstream(t, (_req, res) =>
    res
      .writeHead(200, { 'content-type': 'text/html' })
      .end(
        `<!doctype html><html lang="en"><title>Orders</title><script src="/.gatehouse/session.js" defer></script><h1>Orders</h1></html>`,
      ),
  )
  const application = new URL(`http://127.0.0.1:${port}`)
  const { url, partners } = await twoProviders(t, { upstreams: separate, application })
  const jane = await chromium.person(t)
  const open = async (path: string) => {
    const page = await jane.tab()
    await page.goto(url + path)
    await choose(page, 'Jane Doe')
    await page.waitForURL(url + path)
    await page.evaluate(`window.seen = []
      for (const name of ['ended', 'changed', 'renewed'])
        document.addEventListener('gatehouse:' + name, ({ detail }) => seen.push([name, detail.sign_in]))`)
    return page
  }
  const [ofStaff, ofPartners] = [await open('/staff/orders'), await open('/partners/orders')]

  await partners.endSession(partners.sessions()[0]?.sid ?? '')

  await ofPartners.waitForFunction('seen.length > 0')
  const signIn = '/.gatehouse/partners/sign-in?return_to=%2F.gatehouse%2Fsigned-in'
  assert.deepEqual(await ofPartners.evaluate('seen'), [['ended', signIn]])
  assert.deepEqual(await ofStaff.evaluate('seen'), [])

  // A sign-in in another window tells the pages of its provider.
  const page = await jane.tab()
  await page.goto(url + signIn)
  await page.getByRole('button', { name: 'Jane Doe' }).click()
  await ofPartners.waitForFunction(`seen.at(-1)[0] === 'renewed'`)
  assert.deepEqual(await ofStaff.evaluate('seen'), [])
})

test('A sign-in for a new session is at the provider of the page that asks for it', async (t) => {
  const upstreams = (upstream: URL) => `  staff: { url: ${upstream.origin}, providers: [staff] }
  partners: { url: ${upstream.origin}, path: /partners, providers: [partners] }
`
  const { url, partners } = await twoProviders(t, { upstreams })
  const signIn = `${url}/.gatehouse/sign-in?return_to=%2F.gatehouse%2Fsigned-in`

  const asked = await new Browser('jane').send(signIn, { headers: { referer: `${url}/partners/orders` } })

  assert.equal(new URL(String(asked.headers['location'])).origin, new URL(partners.issuer).origin)
  const unknown = await new Browser('jane').send(signIn)
  assert.equal(unknown.status, 200)
  assert.match(unknown.body, /\/\.gatehouse\/partners\/sign-in/)
})
