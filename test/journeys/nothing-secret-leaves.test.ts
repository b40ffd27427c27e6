import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Browser, type Visit, type VisitOptions } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { startWorld, type World } from '../support/world.ts'

/** A browser that records its responses. */
class Witness extends Browser {
  readonly visits: Visit[] = []

  override async send(url: string, options?: VisitOptions): Promise<Visit> {
    const visit = await super.send(url, options)
    this.visits.push(visit)
    return visit
  }
}

interface Secret {
  readonly name: string
  readonly text: string
}

/** Records all tokens and codes that the provider issues. */
function remember(world: World): Secret[] {
  const secrets: Secret[] = []
  world.provider.bend('/oauth/token', (body) => {
    for (const name of ['access_token', 'refresh_token', 'id_token']) secrets.push({ name, text: String(body[name]) })
    body['expires_in'] = 10
  })
  return secrets
}

/** The beginning, the end and each part of a token are secret, too. */
function partsOf({ name, text }: Secret): Secret[] {
  const parts = [text, text.slice(0, 24), text.slice(-24), ...text.split('.')].filter((part) => part.length >= 20)
  // All JWTs have the same header, which is not secret.
  return parts.filter((part) => !text.startsWith(`${part}.`)).map((part) => ({ name, text: part }))
}

test('No page, JSON document, header, log line or probe response of a whole journey has a token, code or session id', async (t) => {
  const adminPort = await freePort()
  const world = await startWorld(t, {
    store: 'redis',
    session: 'poll_userinfo: 30s',
    settings: `admin: { listen: 127.0.0.1:${adminPort} }\nlog: { level: debug }`,
  })
  const secrets = remember(world)
  const jane = new Witness('jane')
  const at = (path: string) => `${world.url}${path}`
  const fromHere = { headers: { 'sec-fetch-site': 'same-origin' } }

  const callback = new URL(await jane.until(at('/echo'), '/.gatehouse/callback'))
  secrets.push({ name: 'code', text: callback.searchParams.get('code') ?? '' })
  await jane.send(callback.href.replace('iss=', 'iss=x'))
  await jane.get(at('/echo'))
  const cookie = jane.cookies.get('gatehouse')?.value ?? ''
  // The part before it groups the sessions of one sid.
  secrets.push({ name: 'session id', text: cookie.slice(24) })
  await jane.get(callback.href)
  for (const path of ['/', '/echo', '/api/me', '/admin/', '/static/about.txt', '/nothing', '/%zz', '/.gatehouse/'])
    await jane.get(at(path))
  for (const path of ['session', 'sign-in', 'signed-out', 'callback', 'forward-auth', 'jwks.json', 'nothing'])
    await jane.get(at(`/.gatehouse/${path}`))
  await jane.fetch(at('/.gatehouse/session'))
  await jane.send(at('/.gatehouse/backchannel-logout'), { method: 'POST' })
  for (let refreshes = 0; refreshes < 2; refreshes += 1) {
    world.moveClock(11_000)
    await jane.get(at('/echo'))
  }
  await jane.send(at('/.gatehouse/sign-out'), { headers: { 'sec-fetch-site': 'cross-site' } })
  const signOut = await jane.send(at('/.gatehouse/sign-out'), fromHere)
  await jane.get(String(signOut.headers['location']))
  const probes = await Promise.all(
    ['/live', '/ready', '/metrics', '/'].map((path) => fetch(`http://127.0.0.1:${adminPort}${path}`)),
  )

  // The provider gets back the ID Token that it issued (RP-Initiated Logout 1.0 §2).
  const location = new URL(String(signOut.headers['location']))
  assert.ok(secrets.some(({ text }) => text === location.searchParams.get('id_token_hint')))
  const ours = jane.visits.filter(({ url }) => url.startsWith(world.url))
  const responses = ours
    .filter((visit) => visit !== signOut)
    .map(({ url, headers, body }) => ({
      where: url.replace(/\?.*/, ''),
      text: `${JSON.stringify(withoutOurCookie(headers))}${body}`,
    }))
  const logged = world.replicas.flatMap(({ log }) => log).map((line) => ({ where: 'log', text: JSON.stringify(line) }))
  const probed = await Promise.all(
    probes.map(async (response) => ({ where: response.url, text: await response.text() })),
  )
  const spilt = secrets
    .flatMap(partsOf)
    .flatMap(({ name, text }) =>
      [...responses, ...logged, ...probed]
        .filter((said) => said.text.includes(text))
        .map(({ where }) => `${name}: ${where}`),
    )

  assert.ok(secrets.length >= 8 && secrets.every(({ text }) => text.length >= 20), `${secrets.length} secrets`)
  assert.ok(responses.length >= 25, `${responses.length} answers`)
  assert.deepEqual([...new Set(spilt)], [])
})

/** The cookie is the place where a session id belongs. */
function withoutOurCookie({ 'set-cookie': cookies, ...others }: Visit['headers']) {
  return { ...others, cookies: [cookies ?? []].flat().filter((cookie) => !cookie.startsWith('gatehouse=')) }
}

test('No response of the gateway itself names its version, its components or the address of the application', async (t) => {
  const world = await startWorld(t, { upstream: new URL('http://127.0.0.1:1') })
  const jane = world.browser()
  const [page, script] = [await jane.get(`${world.url}/echo`), await jane.fetch(`${world.url}/echo`)]
  const refused = [
    await jane.get(`${world.url}/.gatehouse/nothing`),
    await jane.send(`${world.url}/.gatehouse/callback?error=x`),
    await jane.send(`${world.url}/%zz`),
  ]

  assert.deepEqual([page.status, script.status], [502, 502])
  for (const { headers, body, url } of [page, script, ...refused]) {
    const text = JSON.stringify(headers) + body
    for (const word of ['127.0.0.1:1', 'fastify', 'undici', 'node', 'ECONNREFUSED', '0.1.0', '\n    at '])
      assert.ok(!text.toLowerCase().includes(word.toLowerCase()), `${word} in the answer to ${url}`)
    assert.equal(headers['server'], undefined)
    assert.equal(headers['x-powered-by'], undefined)
  }
})
