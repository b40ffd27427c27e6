import assert from 'node:assert/strict'
import { test } from 'node:test'
import { siteDomain } from '../support/certificates.ts'
import { startFormApplication } from '../support/form-application.ts'
import { goOn, press, submit } from '../support/form-browser.ts'
import { startSite } from '../support/site.ts'

test('A session cookie that another host has added does not keep a form from being sent', async (t) => {
  const application = await startFormApplication(t)
  const site = await startSite(t, {
    upstreams: (_, port) => `
  wiki:
    external_url: https://wiki.${siteDomain}:${port}
    url: ${application.url.origin}
    headers: { X-Remote-User: sub }`,
  })
  const jane = site.browser()
  await jane.get(site.url('wiki', '/forms'))
  jane.kept = jane.kept.filter(({ name }) => name !== '__Secure-gatehouse')
  const page = await goOn(jane, await submit(jane, site.url('wiki', '/')))
  const junk = { name: '__Secure-gatehouse', value: 'junk', domain: `wiki.${siteDomain}`, path: '/' }
  jane.kept = [...jane.kept, junk]

  const sent = await press(jane, page, 'Send now')

  assert.equal(sent.status, 200)
  assert.equal(application.received.length, 1)
})
