import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cookiesNamed, readCookie, withoutCookies } from '../../src/http/cookies.ts'
import { SessionCookie } from '../../src/session/cookies/session-cookie.ts'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { startWorld } from '../support/world.ts'

const name = '__Host-gatehouse'
/** Chromium sends such names, which `String.trim` shortens to that of the session cookie. */
const added = ['\xa0', '\ufeff', '\u2003', '\v', '\f'].map((space) => space + name)

for (const other of [...added, `${name} `, `${name}\t`])
  test(`A cookie of the name ${JSON.stringify(other)} is not the session cookie, and no application gets it`, () => {
    const cookie = new SessionCookie({ name, secure: true, sameSite: 'lax' })
    const [id, own] = ['A', 'B'].map((letter) => letter.repeat(64))
    assert.equal(cookie.read(`${other}=${id}`), undefined)
    for (const header of [`${other}=${id}; ${name}=${own}`, `${name}=${own}; ${other}=${id}`]) {
      assert.equal(readCookie(header, name), own)
      assert.equal(cookie.read(header), own)
      assert.deepEqual(cookie.severalIn(header), [])
      assert.equal(cookiesNamed(header, name).get(name), own)
      assert.equal(withoutCookies(header, cookie.isGatewayCookie), undefined)
    }
  })

test('A cookie of another host that only a no-break space distinguishes does not sign anybody in or out', async (t) => {
  const world = await startWorld(t)
  const [jane, mallory] = [world.browser(), world.browser('samir')]
  for (const browser of [jane, mallory]) await browser.get(`${world.url}/echo`)
  const [own, others] = [jane, mallory].map(({ cookies }) => cookies.get('gatehouse')?.value)
  const send = (cookie: string) =>
    exchangeRaw(
      Number(new URL(world.url).port),
      `GET /echo HTTP/1.1\r\nHost: ${new URL(world.url).host}\r\nCookie: ${cookie}\r\n\r\n`,
    )

  for (const header of [`\xa0gatehouse=${others}; gatehouse=${own}`, `gatehouse=${own}; \xa0gatehouse=${others}`])
    assert.match((await send(header)).text, /^HTTP\/1\.1 200 [^]*"X-Remote-User",\s*"jane"/)
  assert.doesNotMatch((await send(`\xa0gatehouse=${others}`)).text, /^HTTP\/1\.1 200 /)
})
