import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { Browser, type Visit } from '../support/browser.ts'
import { hasPassed, judgeOnlyUnlessBusy } from '../support/busy-verdict.ts'
import { issueCertificates } from '../support/certificates.ts'
import { type Command, gatehouse, startCommand } from '../support/command.ts'
import { DeviceBrowser } from '../support/device-browser.ts'
import { goOn, press, submit, typed } from '../support/form-browser.ts'
import { freePort } from '../support/free-port.ts'
import { startProvider } from '../support/provider.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { startBalancer, type Target } from './balancer.ts'

// Old and new replicas on one Redis, forward and back. Run by `npm run test:upgrade`.
const programs = {
  old: [process.execPath, process.env['OLD_GATEHOUSE'] ?? ''],
  new: gatehouse,
} as const
type Version = keyof typeof programs
judgeOnlyUnlessBusy()

const secrets = { CLIENT_SECRET: 'correct horse battery staple', SESSION_KEY: Buffer.alloc(32, 9).toString('base64') }
/** The lifetime of access tokens, in seconds: people refresh all the time. */
const accessTokenSeconds = 4
const steadyPeople = ['jane', 'sam', 'zoe', 'kim', 'lee', 'bob', 'eve'] as const
/** Between two requests of a person, in ms. */
const pauseMs = 40

interface Running extends Target {
  readonly version: Version
  readonly command: Command
}

/** An application with its own session, forms, and a logout. It records the signed identities. */
async function startApplication(t: TestContext) {
  const visits = new Map<string, { readonly owner: string; count: number }>()
  const [identities, forms, loggedOut]: [string[], string[], string[]] = [[], [], []]
  const server = createServer((req, res) => {
    const person = String(req.headers['x-remote-user'] ?? '')
    const [, id = ''] = /JSESSIONID=([^;]*)/.exec(req.headers.cookie ?? '') ?? []
    if (req.url === '/logout') loggedOut.push(visits.get(id)?.owner ?? '')
    else if (req.method === 'POST') {
      let content = ''
      req.on('data', (chunk) => (content += chunk)).on('end', () => forms.push(`${person} ${content}`))
    }
    const identity = req.headers['x-gatehouse-identity']
    if (typeof identity === 'string') identities.push(identity)
    const known = visits.get(id)
    const session = known ?? { owner: person, count: 0 }
    if (known === undefined) {
      const fresh = `${person}-${visits.size}`
      visits.set(fresh, session)
      res.setHeader('Set-Cookie', `JSESSIONID=${fresh}; Path=/; HttpOnly`)
    }
    session.count += 1
    req.on('end', () => res.end(JSON.stringify({ person, owner: session.owner, count: session.count }))).resume()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, identities, forms, loggedOut }
}

async function startFleet(t: TestContext, workers: number) {
  const { server: tls, client } = issueCertificates()
  const port = await freePort()
  const url = `https://localhost:${port}`
  const redis = await startRedis(t)
  const application = await startApplication(t)
  const [reused, refreshed]: [string[], { count: number }] = [[], { count: 0 }]
  const names = [...steadyPeople, ...Array.from({ length: 40 }, (_, n) => `guest-${n}`)]
  const provider = await startProvider(t, {
    client_id: 'orders',
    client_secret: secrets.CLIENT_SECRET,
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
    people: names.map((sub) => ({
      ...{ sub, email: `${sub}@example.com`, given_name: sub, family_name: 'Doe' },
      fields: { costCentre: '1', employeeNumber: '1', groups: [] },
    })),
    adjust: (configuration) => ({ ...configuration, ttl: { ...configuration.ttl, AccessToken: accessTokenSeconds } }),
    extend: (oidc) => {
      oidc.on('grant.success', ({ oidc: { params } }) => {
        if (params?.['grant_type'] === 'refresh_token') refreshed.count += 1
      })
      oidc.on('grant.error', (_ctx, error) => {
        const detail = (error as { readonly error_detail?: string }).error_detail ?? error.message
        if (/already used/.test(detail)) reused.push(detail)
      })
    },
  })
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-rolling-'))
  t.after(() => {
    if (hasPassed(t)) rmSync(folder, { recursive: true, force: true })
    else t.diagnostic(`The configurations and the logs of the replicas are in ${folder}`)
    for (const { name, command } of hasPassed(t) ? [] : all)
      writeFileSync(join(folder, `${name}.log`), command.out() + command.err())
  })
  const balancer = await startBalancer(t, port, tls)
  const running: Running[] = []
  /** All replicas, also those that have stopped. */
  const all: Running[] = []

  const start = async (version: Version): Promise<Running> => {
    const [own, admin] = [await freePort(), await freePort()]
    const name = `${version}-${all.length + 1}`
    const file = join(folder, `${name}.yaml`)
    writeFileSync(
      file,
      `version: 1
listen: 127.0.0.1:${own}
workers: ${workers}
admin: { listen: "127.0.0.1:${admin}" }
external_url: ${url}
trusted_proxies: [127.0.0.1]
provider: { issuer: "${provider.issuer}", client_id: orders, client_secret: { env: CLIENT_SECRET } }
session:
  keys: [{ env: SESSION_KEY }]
  store: { redis: { url: "${redis.url}" } }
upstreams:
  orders:
    url: ${application.url}
    headers: { X-Remote-User: sub, Authorization: { bearer: access_token } }
    session_cookies: [JSESSIONID]
    signed_identity: { claims: [email] }
    logout: { call: { post: /logout } }
`,
    )
    const command = startCommand(t, ['run', '--config', file], { program: programs[version], env: secrets })
    const replica = { name, version, command, url: `http://127.0.0.1:${own}`, adminUrl: `http://127.0.0.1:${admin}` }
    all.push(replica)
    await command.said('gatehouse is ready').catch((cause: unknown) => assert.fail(`${name}: ${String(cause)}`))
    await balancer.add(replica)
    running.push(replica)
    return replica
  }
  /** Starts a replica of a version, and then stops the oldest one, as a rolling upgrade does. */
  const replaceOldest = async (version: Version) => {
    await start(version)
    const leaving = running.shift() ?? assert.fail()
    leaving.command.child.kill('SIGTERM')
    assert.equal(await leaving.command.ended, 0, `${leaving.name} ends: ${leaving.command.err()}`)
  }
  /** What the replicas have logged about a request that a text names, and their last warnings. */
  const linesAbout = (text: string) => {
    const [, id] = /"request_id": ?"([\w-]+)"/.exec(text) ?? []
    return all.flatMap(({ name, command }) => {
      const lines = command.log()
      const warnings = lines.filter(({ level }) => level === 'warn' || level === 'error').slice(-5)
      const about = lines.filter(({ request, request_id }) => id !== undefined && [request, request_id].includes(id))
      return [...about, ...warnings].map((line) => `\n  ${name}: ${JSON.stringify(line)}`)
    })
  }
  const ca = client.ca ?? ''
  return {
    ...{ url, ca, provider, application, balancer, running, reused, refreshed, start, replaceOldest, linesAbout },
    browser: (person: string) => new Browser(person, ca),
    versions: () => running.map(({ version }) => version).join('+'),
  }
}

type Fleet = Awaited<ReturnType<typeof startFleet>>

interface Shown {
  readonly person: string
  readonly owner: string
  readonly count: number
}

function shown({ status, body, url, headers }: Visit): Shown {
  assert.equal(status, 200, `${url}: ${status} ${String(headers['location'])} ${body.slice(0, 300)}`)
  return JSON.parse(body) as Shown
}

/** People who stay signed in, and use the application all the time, until `stop`. */
async function beginLoad(fleet: Fleet) {
  let isOver = false
  const device = new DeviceBrowser('jane', fleet.ca)
  const people = steadyPeople.map((person) => ({ person, browser: person === 'jane' ? device : fleet.browser(person) }))
  for (const { browser } of people) shown(await browser.get(`${fleet.url}/`))
  const registered = await device.register()
  assert.equal(registered.status, 200, registered.body)
  const faults: string[] = []
  const loads = people.map(async ({ person, browser }) => {
    let count = 0
    while (!isOver) {
      try {
        const page = shown(await browser.fetch(`${fleet.url}/`))
        assert.deepEqual([page.person, page.owner], [person, person])
        assert.ok(page.count > count, 'the session of the application goes on')
        count = page.count
      } catch (error) {
        faults.push(`${person}: ${String(error)}${fleet.linesAbout(String(error)).join('')}`)
        return
      }
      await pause(pauseMs)
    }
  })
  return {
    ...{ device, faults },
    stop: async () => {
      isOver = true
      await Promise.all(loads)
    },
  }
}

/** Sends a Logout Token to a replica. */
async function logOut(fleet: Fleet, person: string, at: Target) {
  const { sid, sub } = fleet.provider.sessions().find((session) => session.sub === person) ?? assert.fail(person)
  const logout_token = await fleet.provider.logoutToken({ sid, sub })
  const { host } = new URL(fleet.url)
  const response = await new Browser(person).send(`${at.url}/.gatehouse/backchannel-logout`, {
    method: 'POST',
    headers: { host, 'x-forwarded-proto': 'https', 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ logout_token }).toString(),
  })
  assert.equal(response.status, 200, `${at.name}: ${response.body}`)
}

/** A session that all replicas have in memory ends everywhere with the response to its token. */
async function assertLogout(fleet: Fleet, person: string, at: Target) {
  const guest = fleet.browser(person)
  shown(await guest.get(`${fleet.url}/`))
  const { host } = new URL(fleet.url)
  // Each on a connection of its own, so that the workers take turns.
  const statusesAt = (target: Target) =>
    Promise.all(
      Array.from({ length: 6 }, async () => {
        const headers = { host, 'x-forwarded-proto': 'https', cookie: guest.cookieHeader, connection: 'close' }
        return (await new Browser(person).fetch(`${target.url}/`, { headers })).status
      }),
    )
  for (const target of fleet.running) assert.deepEqual([...new Set(await statusesAt(target))], [200], target.name)
  await logOut(fleet, person, at)
  for (const target of fleet.running) {
    const statuses = await statusesAt(target)
    assert.ok(!statuses.includes(200), `${target.name} serves ${person} after the logout at ${at.name}`)
  }
  await until(`the application hears of it: ${person}`, () => fleet.application.loggedOut.includes(person))
}

/** What any replica signs, each one can verify with its keys. */
async function assertIdentities(fleet: Fleet) {
  const recent = fleet.application.identities.slice(-30)
  assert.ok(recent.length > 0)
  for (const { url, name } of fleet.running) {
    const headers = { host: new URL(fleet.url).host, 'x-forwarded-proto': 'https' }
    const { status, body } = await new Browser('app').fetch(`${url}/.gatehouse/jwks.json`, { headers })
    assert.equal(status, 200, name)
    const keys = createLocalJWKSet(JSON.parse(body) as JSONWebKeySet)
    for (const identity of recent) await jwtVerify(identity, keys)
  }
}

for (const workers of [1, 2])
  test(`Old and new replicas serve the same people, forward and back (${workers} workers each)`, async (t) => {
    const fleet = await startFleet(t, workers)
    await fleet.start('old')
    await fleet.start('old')
    const load = await beginLoad(fleet)
    let guests = 0
    const guest = () => `guest-${(guests += 1)}`

    for (const version of ['new', 'new', 'old', 'old'] as const) {
      const before = fleet.versions()
      // A form and a sign-in that are under way during the change.
      const sub = guest()
      const author = fleet.browser(sub)
      shown(await author.get(`${fleet.url}/`))
      await logOut(fleet, sub, fleet.running[0] ?? assert.fail())
      const keptAt = await submit(author, fleet.url)
      const arriving = fleet.browser(guest())
      const callback = await arriving.until(`${fleet.url}/`, '/.gatehouse/callback')

      await fleet.replaceOldest(version)
      const step = `${before} → ${fleet.versions()}`

      shown(await arriving.get(callback, { headers: { 'sec-fetch-site': 'cross-site' } }))
      const page = await goOn(author, keptAt)
      assert.equal((await press(author, page, 'Send now')).status, 200, step)
      assert.deepEqual(
        fleet.application.forms.filter((form) => form.startsWith(`${sub} `)),
        [`${sub} ${typed}`],
        `${step}: the form arrives once`,
      )
      for (const at of fleet.running) await assertLogout(fleet, guest(), at)
      assert.equal((await load.device.renew()).status, 200, `${step}: the device proves its key`)
      await assertIdentities(fleet)
      const refreshedBefore = fleet.refreshed.count
      await until(`${step}: everybody refreshes twice`, () => {
        assert.deepEqual(load.faults, [], step)
        return fleet.refreshed.count >= refreshedBefore + 2 * steadyPeople.length
      })
      assert.deepEqual([load.faults, fleet.balancer.failures, fleet.reused], [[], [], []], step)
      t.diagnostic(`${step}: ${fleet.refreshed.count} refreshes, ${[...fleet.balancer.responses].join(' ')}`)
    }
    await load.stop()
    assert.deepEqual([load.faults, fleet.balancer.failures, fleet.reused], [[], [], []])
  })
