import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

/** The domains for which a response expires a cookie. "-" is the host alone. */
function expiredDomains(setCookie: string | string[] | undefined, name: string): string[] {
  return [setCookie ?? []]
    .flat()
    .filter((line) => line.startsWith(`${name}=;`) && line.includes('Max-Age=0') && line.includes('Path=/;'))
    .map((line) => / Domain=([^;]+)/.exec(line)?.[1] ?? '-')
}

for (const [host, domains] of [
  ['shop.eu.example.com', ['-', 'shop.eu.example.com', 'eu.example.com', 'example.com']],
  ['example.com', ['-', 'example.com']],
  ['a.b.c.d.e.f.example.com', ['-', 'd.e.f.example.com', 'e.f.example.com', 'f.example.com', 'example.com']],
  ['intranet', ['-']],
  ['192.0.2.7', ['-']],
] as const)
  test(`Sign-out at ${host} expires the cookies that its application may have set for a domain`, async (t) => {
    const world = await startWorld(t, {
      upstreamSettings: `external_url: http://${host}
    logout: { paths: [/logout], cookies: [JSESSIONID, __Host-cart, basket] }`,
    })

    const { headers } = await world.browser().send(`${world.url}/.gatehouse/sign-out`, {
      headers: { host, cookie: 'JSESSIONID=1; __Host-cart=1', 'sec-fetch-site': 'same-origin' },
    })

    assert.deepEqual(expiredDomains(headers['set-cookie'], 'JSESSIONID'), domains)
    assert.deepEqual(expiredDomains(headers['set-cookie'], '__Host-cart'), ['-'])
    assert.deepEqual(expiredDomains(headers['set-cookie'], 'basket'), [])
  })
