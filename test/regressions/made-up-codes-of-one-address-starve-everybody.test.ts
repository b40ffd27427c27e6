import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'
import { startSignedIn } from '../tokens/signed-in.ts'

/** A long timeout, so that no request times out during a test. */
const patient = { providerSettings: 'timeout: 60s', settings: 'trusted_proxies: [127.0.0.1]' }
/** This exceeds the number of connections to the provider. */
const codes = 60

/**
 * Resolves when the provider has received all codes that it will get. No more arrive while other
 * people use the gateway and the provider.
 */
async function untilNoMoreCome({ url, provider }: World, held: readonly unknown[]): Promise<void> {
  for (let unchanged = 0; unchanged < 25;) {
    const before = held.length
    await (await fetch(`${url}/.gatehouse/signed-out`)).text()
    await (await fetch(`${provider.issuer}/.well-known/openid-configuration`)).text()
    unchanged = held.length === before && before >= 12 ? unchanged + 1 : 0
  }
}

/**
 * One address returns with invented codes, to which the provider never responds. Resolves when the
 * provider has some of them.
 */
async function sendMadeUpCodes(world: World): Promise<() => Promise<void>> {
  const held: (() => void)[] = []
  // The body has been read when the owner of the request is known. All other requests get 500.
  world.provider.fault('/oauth/token', (req, res) => {
    let form = ''
    req.on('data', (chunk: Buffer) => (form += chunk.toString()))
    req.on('end', () => {
      if (form.includes('made-up')) held.push(() => void res.writeHead(400).end())
      else res.writeHead(500).end()
    })
  })
  const stranger = { headers: { 'x-forwarded-for': '192.0.2.66' } }
  const sent = Array.from({ length: codes }, async () => {
    const browser = world.browser()
    const begun = await browser.send(`${world.url}/.gatehouse/sign-in`, stranger)
    const state = new URL(String(begun.headers['location'])).searchParams.get('state') ?? ''
    const callback = new URLSearchParams({ state, code: 'made-up', iss: world.provider.issuer })
    return browser.send(`${world.url}/.gatehouse/callback?${callback.toString()}`, stranger)
  })
  await untilNoMoreCome(world, held)
  return async () => {
    let done = false
    const all = Promise.all(sent).then(() => (done = true))
    await until('all have been refused', () => {
      for (const refuse of held.splice(0)) refuse()
      return done
    })
    await all
  }
}

test('Invented codes from one address keep nobody else from signing in', async (t) => {
  const world = await startWorld(t, patient)
  const jane = world.browser()
  const callback = await jane.until(`${world.url}/echo`, '/.gatehouse/callback')
  const refuseAll = await sendMadeUpCodes(world)
  const before = world.provider.hits('/oauth/token')

  const responding = jane.send(callback, { headers: { 'x-forwarded-for': '192.0.2.7' } })
  await until('the code of the other address reaches the provider', () => world.provider.hits('/oauth/token') > before)

  assert.equal((await responding).status, 503)
  await refuseAll()
})

test('Invented codes from one address keep no session from being refreshed', async (t) => {
  const { world, ask, refreshes } = await startSignedIn(t, patient)
  const refuseAll = await sendMadeUpCodes(world)
  const before = refreshes()
  world.moveClock(11_000)

  const responding = ask()
  await until('the refresh reaches the provider', () => refreshes() > before)

  assert.equal((await responding).status, 503)
  await refuseAll()
})
