import assert from 'node:assert/strict'
import { test } from 'node:test'
import { siteDomain } from '../support/certificates.ts'
import { startChromium } from '../support/chromium.ts'
import { startSite } from '../support/site.ts'

const chromium = await startChromium()

test('In a browser, one sign-in is for all hosts of a domain, and so is the sign-out', async (t) => {
  const site = await startSite(t, { session: `cookie: { domain: ${siteDomain}, same_site: strict }` })
  const jane = await chromium.person(t, { ignoreHTTPSErrors: true })
  const [wiki, notes] = [await jane.tab(), await jane.tab()]
  await wiki.goto(site.url('wiki', '/echo'))
  await wiki.getByRole('button', { name: 'Jane Doe' }).click()
  await wiki.waitForURL(site.url('wiki', '/echo'))
  await notes.goto(site.url('notes.apps', '/echo'))
  assert.equal(notes.url(), site.url('notes.apps', '/echo'))

  await t.test('a page of another host cannot act in the name of the person', async () => {
    const url = JSON.stringify(site.url('wiki', '/echo'))
    await notes.evaluate(`fetch(${url}, { method: 'POST', mode: 'no-cors', credentials: 'include' }).catch(() => {})`)
    const denied = site.replicas[0]?.log.filter(({ message }) => message === 'access.denied')
    assert.match(String(denied?.[0]?.fields['reason']), /notes\.apps.*\(same-site\)/)
  })

  await t.test('an application cannot replace the cookie of the session', async () => {
    await notes.evaluate(`document.cookie = '__Secure-gatehouse=junk; Secure; Domain=example.test; Path=/echo'`)
    await wiki.goto(site.url('wiki', '/echo?again'))
    assert.equal(wiki.url(), site.url('wiki', '/echo?again'))
  })

  await t.test('a page can get a new session in another window', async () => {
    const opening = jane.context.waitForEvent('page')
    await wiki.evaluate(`void open('/.gatehouse/sign-in?return_to=/.gatehouse/signed-in')`)
    const window = await opening
    if (!window.isClosed()) await window.waitForEvent('close')
    assert.equal(site.providers[0]?.hits('/oauth/authorize'), 2)
  })

  const learned = notes.evaluate(`new Promise((resolve) => {
    new EventSource('/.gatehouse/events').addEventListener('ended', () => resolve('ended'))
  })`)
  await wiki.goto(site.url('wiki', '/.gatehouse/sign-out'))
  await wiki.waitForURL(/signed-out/)
  assert.equal(new URL(wiki.url()).origin, new URL(site.url('wiki', '/')).origin)
  assert.equal(await learned, 'ended')
  await notes.goto(site.url('notes.apps', '/echo'))
  assert.equal(new URL(notes.url()).origin, site.providers[0]?.issuer)
})
