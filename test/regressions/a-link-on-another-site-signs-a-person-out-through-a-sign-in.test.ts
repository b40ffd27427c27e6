import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

for (const target of ['/%2egatehouse/sign-out', '/.%67atehouse/sign-out?then=sign-in', '/logout', '/%6Cogout'])
  test(`A sign-in that another site starts leads neither to the sign-out nor to a logout link: ${target}`, async (t) => {
    const world = await startWorld(t, { session: 'cookie: { same_site: strict }' })
    const jane = world.browser()
    await jane.get(`${world.url}/`)
    const before = jane.cookies.get('gatehouse')
    // The browser sends no strict cookie with a link on another site.
    jane.cookies.delete('gatehouse')

    const link = `${world.url}/.gatehouse/sign-in?return_to=${encodeURIComponent(target)}`
    const callback = await jane.get(link, { headers: { 'sec-fetch-site': 'cross-site' } })

    // The page continues by itself, at this origin.
    const [, next = ''] = /url=(.*)$/.exec(String(callback.headers['refresh'])) ?? []
    const page = await jane.get(new URL(next, callback.url).href, { headers: { 'sec-fetch-site': 'same-origin' } })
    assert.deepEqual([page.url, page.status], [`${world.url}/`, 200])
    assert.ok(before)
    const { sessions } = world.provider
    assert.equal(sessions().length, 1, 'the session at the provider stays')
  })
