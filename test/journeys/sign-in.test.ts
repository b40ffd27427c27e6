import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

interface Echo {
  readonly method: string
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
}

function headersOf(body: string): Map<string, string> {
  return new Map((JSON.parse(body) as Echo).headers.map(([name, value]) => [name.toLowerCase(), value]))
}

test('A person signs in, and the application gets the identity', async (t) => {
  const world = await startWorld(t)
  const zoe = world.browser('zoe')

  const page = await zoe.get(`${world.url}/echo?a=%2F&b`)

  assert.equal(page.status, 200)
  assert.equal(page.url, `${world.url}/echo?a=%2F&b`)
  const headers = headersOf(page.body)
  assert.equal(headers.get('x-remote-user'), 'zoe')
  assert.equal(Buffer.from(headers.get('x-name') ?? '', 'latin1').toString(), 'Zoë Müller')
  assert.match(headers.get('x-email') ?? '', /@/)
  assert.ok(headers.get('x-cost-centre'))
  assert.equal(headers.get('x-groups'), 'sales,Vertrieb%20S%C3%BCd')
  assert.ok(!(headers.get('cookie') ?? '').includes('gatehouse'), 'the gateway keeps its cookie to itself')
})

test('Ten tabs that sign in at once all end at their own pages, and leave the cookies of one sign-in', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const wanted = Array.from({ length: 10 }, (_, tab) => `${world.url}/echo?tab=${tab}`)

  // All tabs are at the provider before the first one comes back.
  const callbacks: string[] = []
  for (const url of wanted) callbacks.push(await jane.until(url, '/.gatehouse/callback'))
  const pages = await Promise.all(callbacks.map((callback) => jane.get(callback)))

  assert.deepEqual(
    pages.map(({ status, url }) => [status, url]),
    wanted.map((url) => [200, url]),
  )
  assert.deepEqual(
    [...jane.cookies.keys()].filter((name) => name.startsWith('gatehouse')),
    ['gatehouse', 'gatehouse-person'],
  )
})

test('Sign-ins that are never finished do not let cookies accumulate', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()

  for (let attempt = 0; attempt < 40; attempt += 1) await jane.send(`${world.url}/.gatehouse/sign-in`)

  assert.ok(jane.cookies.size <= 16, `${jane.cookies.size} cookies`)
})
