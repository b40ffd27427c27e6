import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld, type World } from '../support/world.ts'

/** Why the last sign-in failed, as the log has it. */
function reasonOf({ replicas }: World): string {
  const failed = replicas.flatMap(({ log }) => log).filter(({ message }) => message === 'sign_in.failed')
  return String(failed.at(-1)?.fields['reason'])
}

test('The log says that a sign-in began over http, where browsers keep no cookie of an https site', async (t) => {
  const world = await startWorld(t, {
    externalUrl: (port) => `https://localhost:${port}`,
    settings: 'trusted_proxies: [127.0.0.1]',
  })
  const at = (path: string) => world.url.replace('https:', 'http:') + path
  const over = (proto: string) => ({ headers: { 'x-forwarded-proto': proto } })
  const begun = await world.browser().send(at('/.gatehouse/sign-in'), over('http'))
  const callback = await world.browser().until(String(begun.headers['location']), '/.gatehouse/callback')

  const page = await world.browser().send(callback.replace('https:', 'http:'), over('https'))

  assert.equal(page.status, 400)
  assert.match(reasonOf(world), /the sign-in began over http, where browsers keep no cookie with Secure/)
})

test('The log says that another process without session.keys began the sign-in', async (t) => {
  const [one, other] = [
    await startWorld(t, { hasGeneratedKeys: true }),
    await startWorld(t, { hasGeneratedKeys: true }),
  ]
  const begun = await one.browser().send(`${one.url}/.gatehouse/sign-in`)
  const state = new URL(String(begun.headers['location'])).searchParams.get('state') ?? ''

  const page = await other.browser().send(`${other.url}/.gatehouse/callback?code=x&state=${state}`)

  assert.equal(page.status, 400)
  assert.match(reasonOf(other), /without session\.keys each process has keys of its own/)
})

test('The log says that the state was sealed with a key that is not in session.keys', async (t) => {
  const one = await startWorld(t, { sessionKey: Buffer.alloc(32, 1).toString('base64') })
  const other = await startWorld(t, { sessionKey: Buffer.alloc(32, 2).toString('base64') })
  const begun = await one.browser().send(`${one.url}/.gatehouse/sign-in`)
  const state = new URL(String(begun.headers['location'])).searchParams.get('state') ?? ''

  await other.browser().send(`${other.url}/.gatehouse/callback?code=x&state=${state}`)

  assert.match(reasonOf(other), /a key that is not in session\.keys/)
})

test('The log says that a callback was opened without a sign-in', async (t) => {
  const world = await startWorld(t)

  await world.browser().send(`${world.url}/.gatehouse/callback`)

  assert.match(reasonOf(world), /the page was not opened by a sign-in/)
})
