import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { siteDomain } from '../support/certificates.ts'
import { startFormApplication } from '../support/form-application.ts'
import { goOn, press, submit } from '../support/form-browser.ts'
import { startSite } from '../support/site.ts'

test('A form at a host of a wildcard is kept during the sign-in at external_url', async (t) => {
  const application = await startFormApplication(t)
  const site = await startSite(t, {
    upstreams: (_, port) => `
  apps: { external_url: "https://*.apps.${siteDomain}:${port}", url: ${application.url.origin}, headers: { X-Remote-User: sub } }`,
  })
  const jane = site.browser()
  const url = site.url('notes.apps', '/forms')
  await jane.get(url)
  await site.logOut('jane')

  const page = await goOn(jane, await submit(jane, url))
  assert.equal(new URL(page.url).origin, new URL(url).origin)
  const sent = await press(jane, page, 'Send now')

  assert.match(sent.body, /Thank you, jane/)
  assert.equal(sent.url, site.url('notes.apps', '/orders?new=1'))
})

test('The addresses of an application become those of the requested host', async (t) => {
  let origins: unknown
  const { port: own } = await httpUpstream(t, ({ url = '', headers }, res) => {
    if (url === '/old') return res.writeHead(302, { location: `http://${String(headers.host)}/new` }).end()
    origins = [headers.origin, headers['x-forwarded-host']]
    return res.setHeader('content-type', 'text/html').end(`<a href="http://127.0.0.1:${own}/page">`)
  })
  const site = await startSite(t, {
    upstreams: (_, port) => `
  apps:
    external_url: "https://*.apps.${siteDomain}:${port}"
    url: http://127.0.0.1:${own}
    rewrite_content: true
    origin_header: upstream
    rules: [{ path: /*, access: public }]`,
  })
  const jane = site.browser()

  for (const host of ['notes.apps', 'todo.apps']) {
    const { origin, host: name } = new URL(site.url(host, '/'))
    assert.equal((await jane.send(site.url(host, '/'))).body, `<a href="${origin}/page">`)
    assert.equal((await jane.send(site.url(host, '/old'))).headers['location'], `${origin}/new`)
    await jane.fetch(site.url(host, '/'), { method: 'POST', headers: { origin } })
    assert.deepEqual(origins, [`http://127.0.0.1:${own}`, name])
    // The address of another host of the wildcard is another origin.
    await jane.fetch(site.url(host, '/'), {
      method: 'POST',
      headers: { origin: site.url('evil.apps', '').replace(/\/$/, '') },
    })
    assert.notEqual((origins as string[])[0], `http://127.0.0.1:${own}`)
  }
})

test('Another proxy asks about the hosts of a wildcard', async (t) => {
  const site = await startSite(t, {
    settings: 'trusted_proxies: [127.0.0.1]',
    upstreams: (_, port) => `
  apps: { external_url: "https://*.apps.${siteDomain}:${port}", forward_auth: true, headers: { X-Remote-User: sub } }
  wiki: { external_url: "https://wiki.${siteDomain}:${port}", url: "http://127.0.0.1:9" }`,
  })
  const jane = site.browser()
  const { host, origin } = new URL(site.url('notes.apps', '/'))
  const described = (cookie: Readonly<Record<string, string>> = {}, of = host) => ({
    headers: {
      ...{
        'x-forwarded-host': of,
        'x-forwarded-proto': 'https',
        'x-forwarded-uri': '/a?b=c',
        'x-forwarded-method': 'GET',
      },
      ...{ 'x-forwarded-for': '192.0.2.1', ...cookie },
    },
  })
  const ask = (...about: Parameters<typeof described>) =>
    jane.send(site.url('sso', '/.gatehouse/forward-auth'), described(...about))

  const first = await ask()
  const signIn = new URL(String(first.headers['location']))
  assert.equal(signIn.origin + signIn.pathname, site.url('sso', '/.gatehouse/sign-in'))
  assert.equal(signIn.searchParams.get('return_to'), `${origin}/a?b=c`)
  // The application is behind the other proxy, so the browser goes no further than the callback.
  await jane.send(await jane.until(signIn.href, '/.gatehouse/callback'))

  const allowed = await ask()
  assert.equal(allowed.status, 200)
  assert.equal(allowed.headers['x-remote-user'], 'jane')
  assert.equal((await ask({}, `a.b.apps.${siteDomain}`)).status, 404)
})
