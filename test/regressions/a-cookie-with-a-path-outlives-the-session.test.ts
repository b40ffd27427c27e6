import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

const upstreamSettings = `path: /shop
    logout: { paths: [/shop/account/logout], cookies: [JSESSIONID, __Host-cart] }`

/** The names and paths of the cookies that a response expires. */
function expired(setCookie: string | string[] | undefined): string[] {
  return [setCookie ?? []]
    .flat()
    .filter((line) => line.includes('Max-Age=0'))
    .map((line) => line.replace(/^([^=]+)=;.* ?Path=([^;]+);.*$/, '$1 $2'))
    .filter((cookie) => !cookie.startsWith('gatehouse'))
}

const everywhere = ['JSESSIONID /shop', 'JSESSIONID /shop/', 'JSESSIONID /shop/account', 'JSESSIONID /shop/account/']

test('Sign-out expires the cookies of an application with every path that it may have given them', async (t) => {
  const world = await startWorld(t, { upstreamSettings })
  const jane = world.browser()
  await jane.get(`${world.url}/shop/`)

  const response = await jane.send(`${world.url}/.gatehouse/sign-out`, { headers: { 'sec-fetch-site': 'same-origin' } })

  assert.deepEqual(expired(response.headers['set-cookie']), everywhere)
})

test('A cookie that the browser has with two paths expires for both', async (t) => {
  const world = await startWorld(t, { upstreamSettings })
  const jane = world.browser()
  await jane.get(`${world.url}/shop/`)
  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

  const cookie = `${jane.cookieHeader}; JSESSIONID=of-the-shop; JSESSIONID=of-the-host; __Host-cart=1`
  const response = await jane.fetch(`${world.url}/shop/orders`, { headers: { cookie } })

  assert.equal(response.status, 401)
  assert.deepEqual(expired(response.headers['set-cookie']), [
    'JSESSIONID /',
    'JSESSIONID /shop',
    'JSESSIONID /shop/',
    'JSESSIONID /shop/orders',
    'JSESSIONID /shop/account',
    'JSESSIONID /shop/account/',
    '__Host-cart /',
  ])
})
