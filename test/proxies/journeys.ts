import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Missing } from '../applications/installed.ts'
import { dataFolder } from '../applications/programs.ts'
import { Browser } from '../support/browser.ts'
import { root } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import type { TestProvider } from '../support/provider.ts'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { runReplica, type Replica } from '../support/world.ts'
import { last, placed, type Received, startApplication, startProviderFor, valuesOf } from './site.ts'
import { connectWebSocket } from './web-socket.ts'

/** A proxy that asks the gateway, with the configuration of its example. */
export interface Asking {
  readonly name: string
  /** The folder of its example below examples/forward-auth. */
  readonly example: string
  /** Starts the proxy in a folder with the files of the example. @throws {Missing} */
  start(t: TestContext, folder: string, url: URL): Promise<unknown>
}

interface Site {
  readonly url: string
  readonly port: number
  readonly provider: TestProvider
  readonly gateway: Replica
  readonly received: readonly Received[]
  browser(person?: string): Browser
}

/** Starts the gateway, the application and the proxy of an example, on free ports. */
async function startSite(t: TestContext, proxy: Asking): Promise<Site> {
  const [port, gatewayPort, grpc] = [await freePort(), await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const application = await startApplication(t)
  const provider = await startProviderFor(t, url)
  const here = (...path: readonly string[]) =>
    placed(readFileSync(join(root, 'examples', 'forward-auth', ...path), 'utf8'), {
      ...{ url, provider, grpc, proxy: port, gateway: gatewayPort, application: application.port },
    })
  const gateway = await runReplica(t, here('gateway.yaml'), { now: () => Date.now() })
  const folder = join(dataFolder(t), proxy.example)
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(join(root, 'examples', 'forward-auth', proxy.example)))
    writeFileSync(join(folder, name), here(proxy.example, name))
  await proxy.start(t, folder, new URL(`${url}/public/started`))
  application.received.length = 0
  return { url, port, provider, gateway, received: application.received, browser: (who = 'jane') => new Browser(who) }
}

const script = { accept: 'application/json', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }

/** Headers of a client that name somebody, in spellings that applications confuse. */
const forgeries: readonly Readonly<Record<string, string>>[] = [
  { 'X-Remote-User': 'forged', 'X-Groups': 'forged' },
  { 'x-remote-user': 'forged', 'X-GROUPS': 'forged' },
  { X_Remote_User: 'forged' },
  { X_Groups: 'forged' },
  { 'X.Groups': 'forged' },
  { 'X-Gatehouse-Identity': 'forged' },
  { 'Client-Cert': ':forged:', 'Client-Cert-Chain': ':forged:' },
  { 'X-Original-URL': '/admin/forged', 'X-Rewrite-URL': '/admin/forged' },
  { 'X-Original-Method': 'forged' },
  { 'X-Forwarded-Uri': '/public/x', 'X-Forwarded-Method': 'GET', 'X-Groups': 'forged' },
  { Connection: 'close, X-Remote-User, X-Groups', 'X-Groups': 'forged' },
  { Connection: 'close, Cookie', 'X-Groups': 'forged' },
]

/** The journeys that each proxy must pass. */
export function testAsking(proxy: Asking): void {
  test(`${proxy.name} asks the gateway`, { timeout: 600_000 }, async (t) => {
    let site: Site
    try {
      site = await startSite(t, proxy)
    } catch (error) {
      if (!(error instanceof Missing)) throw error
      return t.skip(error.message)
    }
    const { url } = site

    await t.test('A page load signs in, and the application gets the identity', async () => {
      const jane = site.browser()
      const page = await jane.get(`${url}/page?a=1&b=%2F`)
      assert.deepEqual([page.status, page.url], [200, `${url}/page?a=1&b=%2F`])
      const request = last(site)
      assert.equal(request.url, '/page?a=1&b=%2F')
      assert.deepEqual(valuesOf(request, 'x-remote-user'), ['jane'])
      assert.deepEqual(valuesOf(request, 'x-groups'), ['admins,finance'])
      assert.deepEqual(valuesOf(request, 'host'), [new URL(url).host])
    })

    await t.test('The session cookie stays at the proxy, and the cookies of the application arrive', async () => {
      const jane = site.browser()
      await jane.get(`${url}/page`)
      assert.ok(jane.cookies.has('WIKISESSION'))
      await jane.get(`${url}/page`)
      const cookies = valuesOf(last(site), 'cookie').join('; ')
      assert.match(cookies, /WIKISESSION=1/)
      assert.doesNotMatch(cookies, /gatehouse=/)
    })

    await t.test('A forged header never arrives, also where the person has no value for it', async () => {
      const noa = site.browser('noa')
      await noa.get(`${url}/page`)
      for (const path of ['/page', '/public/logo.svg'])
        for (const headers of forgeries) {
          const before = site.received.length
          const response = await noa.fetch(`${url}${path}`, { headers })
          const text = JSON.stringify(site.received.slice(before))
          assert.doesNotMatch(text, /forged/, `${path} ${JSON.stringify(headers)}`)
          for (const request of site.received.slice(before)) {
            const user = valuesOf(request, 'x-remote-user').filter((value) => value !== '')
            assert.deepEqual(user, path === '/page' ? ['noa'] : [], `${path} ${JSON.stringify(headers)}`)
            assert.deepEqual(
              valuesOf(request, 'x-groups').filter((value) => value !== ''),
              [],
            )
          }
          assert.ok(response.status < 500, `${response.status} ${JSON.stringify(headers)}`)
        }
    })

    await t.test('A form arrives with its content', async () => {
      const jane = site.browser()
      await jane.get(`${url}/page`)
      const body = 'x'.repeat(100_000)
      const { status } = await jane.fetch(`${url}/save`, { method: 'POST', body })
      assert.equal(status, 200)
      const request = last(site)
      assert.deepEqual([request.method, request.body.length], ['POST', body.length])
      assert.deepEqual(valuesOf(request, 'x-remote-user'), ['jane'])
    })

    await t.test('Each refusal reaches the client with its status and content', async () => {
      const nobody = site.browser()
      const samir = site.browser('samir')
      await samir.get(`${url}/page`)
      const before = site.received.length

      const asScript = await nobody.send(`${url}/page`, { headers: script })
      assert.equal(asScript.status, 401)
      assert.match(asScript.body, /"sign_in":/)
      const written = await nobody.send(`${url}/page`, { method: 'PUT', headers: script, body: 'text' })
      assert.equal(written.status, 401)
      const page = await samir.send(`${url}/admin/users`)
      assert.equal(page.status, 403)
      assert.match(String(page.headers['content-type']), /^text\/html/)
      assert.match(page.body, /access/)
      const logout = await samir.send(`${url}/logout`)
      assert.deepEqual([logout.status, logout.headers['location']], [303, `${url}/.gatehouse/sign-out`])
      assert.equal(site.received.length, before)
    })

    await t.test('After a Logout Token, the next request is refused, and the browser loses the cookie', async () => {
      const jane = site.browser()
      await jane.get(`${url}/page`)
      const session = site.provider.sessions().at(-1)
      const delivery = await site.provider.endSession(session?.sid ?? '')
      assert.deepEqual(delivery, { kind: 'delivered', status: 200 })
      const before = site.received.length
      const { status } = await jane.send(`${url}/page`, { headers: script })
      assert.deepEqual([status, site.received.length - before], [401, 0])
      assert.ok(!jane.cookies.has('gatehouse'))
    })

    await t.test('A WebSocket opens for a page of this site only', async () => {
      const jane = site.browser()
      await jane.get(`${url}/page`)
      const cookie = `gatehouse=${jane.cookies.get('gatehouse')?.value ?? ''}`
      const own = await connectWebSocket(`${url}/socket`, { cookie, origin: url })
      assert.equal(own.status, 101)
      assert.deepEqual(valuesOf(JSON.parse(own.message) as Received, 'x-remote-user'), ['jane'])
      const foreign = await connectWebSocket(`${url}/socket`, { cookie, origin: 'https://evil.example' })
      assert.equal(foreign.status, 403)
      const nobody = await connectWebSocket(`${url}/socket`, { cookie: '', origin: url })
      assert.equal(nobody.status, 401)
    })

    await t.test('No path leads around the rules', async () => {
      const host = new URL(url).host
      for (const path of [
        '/public/../admin/users',
        '/public/%2e%2e/admin/users',
        '/public/..%2fadmin/users',
        '/public/..;/admin/users',
        '//admin/users',
        '/public//../admin/users',
        '/.gatehouse/../admin/users',
        '/.gatehouse/forward-auth/../../admin/users',
      ]) {
        const before = site.received.length
        await exchangeRaw(site.port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
        assert.deepEqual(
          site.received
            .slice(before)
            .filter(({ url: at }) => /admin/.test(at) && !/^\/public\/(?!.*(?:\.\.|%2e))/i.test(at)),
          [],
          path,
        )
      }
    })

    await t.test('A client cannot ask the gateway through the proxy', async () => {
      const jane = site.browser()
      await jane.get(`${url}/page`)
      const host = new URL(url).host
      const described = {
        'X-Forwarded-Method': 'GET',
        'X-Forwarded-Proto': 'http',
        'X-Forwarded-Host': host,
        'X-Forwarded-Uri': '/page',
        'X-Forwarded-For': '127.0.0.1',
      }
      for (const path of [
        'forward-auth',
        'forward-auth/auth-request',
        'forward-auth/ext-authz/page',
        '%66orward-auth',
      ]) {
        const { status, headers } = await jane.send(`${url}/.gatehouse/${path}`, { headers: described })
        assert.deepEqual([status, headers['x-remote-user']], [404, undefined], path)
      }
    })

    await t.test('While the gateway is away, no request reaches the application', async () => {
      const jane = site.browser()
      await jane.get(`${url}/page`)
      await site.gateway.stop()
      const before = site.received.length
      for (const path of ['/page', '/public/logo.svg']) {
        const { status } = await jane.send(`${url}${path}`)
        assert.ok(status >= 500 || status === 403, String(status))
      }
      assert.equal(site.received.length, before)
    })
  })
}
