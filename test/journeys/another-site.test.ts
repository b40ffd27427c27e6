import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import WebSocket from 'ws'
import type { Browser } from '../support/browser.ts'
import { openWebSocket } from '../support/streams.ts'
import { startWorld, type World } from '../support/world.ts'

const evil = 'https://evil.example'
const form = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site', origin: evil }

async function signedIn(world: World): Promise<Browser> {
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  return jane
}

function refusals(world: World): unknown[] {
  const lines = world.replicas.flatMap(({ log }) => log)
  const refused = lines.filter(
    ({ message, fields }) => message === 'access.denied' && fields['code'] === 'ERR_CROSS_SITE',
  )
  return refused.map(({ fields }) => fields['reason'])
}

test('A form of another site does not act for the signed-in person', async (t) => {
  const world = await startWorld(t)
  const jane = await signedIn(world)
  const post = (headers: Readonly<Record<string, string>>) =>
    jane.send(`${world.url}/echo`, { method: 'POST', headers: { ...form, ...headers }, body: 'amount=1000' })

  const response = await post({})

  assert.equal(response.status, 403)
  assert.match(response.body, /came from another site and was not carried out/)
  assert.deepEqual(refusals(world), [`a page of ${evil} made the request (cross-site)`])
  assert.equal((await post({ 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' })).status, 403)
  assert.equal((await post({ 'sec-fetch-site': 'same-origin', origin: world.url })).status, 200)
})

test('A script of another site gets a problem document', async (t) => {
  const world = await startWorld(t)
  const jane = await signedIn(world)

  const response = await jane.fetch(`${world.url}/echo`, { method: 'PUT', headers: form, body: '' })

  assert.equal(response.status, 403)
  assert.equal(response.headers['content-type'], 'application/problem+json')
})

test('Requests of another site are forwarded where no session is passed on', async (t) => {
  const world = await startWorld(t, {
    upstreamSettings: 'rules: [{ path: /echo/open, access: public }, { path: /echo/maybe, access: optional }]',
  })
  const post = (browser: Browser, path: string) =>
    browser.send(`${world.url}${path}`, { method: 'POST', headers: form, body: '' }).then(({ status }) => status)
  const [jane, stranger] = [await signedIn(world), world.browser()]

  assert.equal(await post(jane, '/echo/open'), 404, 'the answer of the application')
  assert.equal(await post(stranger, '/echo/maybe'), 404)
  assert.equal(await post(jane, '/echo/maybe'), 403)
  assert.equal(await post(stranger, '/echo'), 401, 'a page that says that the form is lost')
})

test('A WebSocket of another site does not open for the signed-in person', async (t) => {
  const world = await startWorld(t)
  const jane = await signedIn(world)
  const open = async (origin: string) => {
    const socket = new WebSocket(`${world.url.replace('http', 'ws')}/ws`, {
      headers: { cookie: jane.cookieHeader },
      origin,
    })
    socket.on('error', () => {})
    t.after(() => socket.terminate())
    const [happened] = await Promise.race([
      once(socket, 'open').then(() => ['open']),
      once(socket, 'unexpected-response').then(([, response]) => [(response as { statusCode: number }).statusCode]),
    ])
    return happened as unknown
  }

  assert.equal(await open(evil), 403)
  assert.equal(await open('null'), 403)
  // The second denial of the same session and rule is counted and logged later.
  assert.deepEqual(refusals(world), [`a page of ${evil} made the request`])
  assert.equal(await open(world.url), 'open')
  await openWebSocket(t, `${world.url}/ws`, jane.cookieHeader)
})

test('Trusted origins can act for the signed-in person', async (t) => {
  const world = await startWorld(t, { upstreamSettings: 'trusted_origins: [https://portal.example.com]' })
  const jane = await signedIn(world)
  const post = (origin: string) =>
    jane.send(`${world.url}/echo`, { method: 'POST', headers: { ...form, origin }, body: '' })

  assert.equal((await post('https://portal.example.com')).status, 200)
  assert.equal((await post(evil)).status, 403)
})

test('With Strict cookies, a person who follows a link from another site keeps the existing session', async (t) => {
  const world = await startWorld(t, { session: 'cookie: { same_site: strict }' })
  const jane = await signedIn(world)
  const cookie = jane.cookieHeader

  // The browser does not send a Strict cookie.
  const kept = new Map(jane.cookies)
  jane.cookies.clear()
  const arrival = await jane.send(`${world.url}/echo?page=2`, { headers: { 'sec-fetch-site': 'cross-site' } })
  for (const [name, value] of kept) jane.cookies.set(name, value)

  assert.equal(arrival.status, 200)
  assert.equal(arrival.headers['refresh'], '0; url=/echo?page=2')
  assert.equal(arrival.headers['set-cookie'], undefined)
  const page = await jane.get(`${world.url}/echo?page=2`, { headers: { 'sec-fetch-site': 'same-origin' } })
  assert.equal(page.status, 200)
  assert.equal(jane.cookieHeader, cookie)

  const stranger = await world
    .browser()
    .get(`${world.url}/echo?page=2`, { headers: { 'sec-fetch-site': 'same-origin' } })
  assert.equal(stranger.status, 200, 'who has no session signs in')
})
