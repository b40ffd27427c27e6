import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { auditVersion } from '../../src/observe/audit.ts'
import type { Browser } from '../support/browser.ts'
import { makeKey } from '../support/key-world.ts'
import { startSessionApplication } from '../support/session-application.ts'
import { press } from '../support/session-page.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

const schema = JSON.parse(readFileSync(new URL('../../schemas/audit-event.schema.json', import.meta.url), 'utf8')) as {
  readonly oneOf: readonly { readonly $ref: string }[]
  readonly definitions: Record<string, object>
}
const ajv = new Ajv({ allErrors: true, strict: true })
/**
 * `audit.dropped` is written when nothing reads the log. `journeys/application-sign-in` has the
 * events about sign-ins at applications. `journeys/access-tokens`, `journeys/service-accounts` and
 * `journeys/client-certificates` have the events about callers, `device/stolen-cookies` those about
 * bound sessions, and `signals` those about security events.
 */
const names = schema.oneOf
  .map(({ $ref }) => $ref.replace('#/definitions/', ''))
  .filter((name) => name !== 'audit.dropped' && !/^(?:caller\.|session\.bound|signal\.|application\.s)/.test(name))
const validators = new Map(
  names.map((name) => [name, ajv.compile({ ...schema, oneOf: undefined, $id: name, $ref: `#/definitions/${name}` })]),
)

type Event = Readonly<Record<string, unknown>>

/** The audit events of all replicas, as they are written. */
function events(world: World): Event[] {
  const lines = world.replicas.flatMap(({ log }) => log).filter(({ fields }) => fields['audit'] === true)
  return lines.map(({ level, message, fields }) => {
    const line = { level, time: '2026-01-02T03:04:05.678Z', msg: message, ...fields }
    return JSON.parse(JSON.stringify(line)) as Event
  })
}

const named = (world: World, name: string) => events(world).filter(({ msg }) => msg === name)

test('Every audit event of a whole journey matches the schema, and the schema has no other events', async (t) => {
  const world = await startWorld(t, {
    store: 'redis',
    session: 'page: true',
    providerSettings: 'frontchannel_logout: true',
    upstream: (await startSessionApplication(t)).url,
    upstreamSettings: `session_cookies: [JSESSIONID]
    keys: {}
    rules:
      - { path: /dav/*, keys: true }
      - { path: /admin/*, require: { claim: fields.groups, any_of: [admins] } }
      - { path: /reports/*, mode: observe, require: { claim: fields.groups, any_of: [admins] } }
    logout: { call: /logout }`,
  })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 10))
  const zoe = world.browser('zoe')

  await zoe.send(`${world.url}/.gatehouse/callback?code=x&state=y`)
  await zoe.get(`${world.url}/echo`)
  await zoe.send(`${world.url}/admin/;x=1?secret=1`)
  await zoe.send(`${world.url}/reports/`)
  world.moveClock(11_000)
  await zoe.fetch(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'zoe' })
  for (let times = 0; times < 2; times += 1) await world.postLogoutToken({ logout_token })
  await world.postLogoutToken({ logout_token: 'none' })
  await zoe.signInAgain(`${world.url}/echo`)
  await zoe.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST', headers: { origin: world.url } })
  await zoe.signInAgain(`${world.url}/echo`)
  const page = `${world.url}/.gatehouse/sessions`
  await makeKey(zoe, { page })
  await press(zoe, await zoe.get(page), /^End the key/)
  const sid = world.provider.sessions()[0]?.sid ?? ''
  for (const asked of [{ iss: world.provider.issuer, sid }, { sid }])
    await zoe.send(
      `${world.url}/.gatehouse/frontchannel-logout?${new URLSearchParams(asked as Record<string, string>)}`,
    )
  await decideAboutForms(world, zoe)

  const written = () => new Set(events(world).map(({ msg }) => String(msg)))
  for (const name of names)
    await until(`${name}, which the schema has, is caused by a step of this journey`, () => written().has(name))
  assert.deepEqual([...written()].toSorted(), names.toSorted())
  for (const event of events(world)) {
    const validate = validators.get(String(event['msg']))
    assert.ok(validate?.(event), `${JSON.stringify(event)}: ${JSON.stringify(validate?.errors)}`)
    assert.equal(event['audit_version'], auditVersion)
  }
})

/** Sends one form that was kept, declines one, and leaves one to another person. */
async function decideAboutForms(world: World, zoe: Browser): Promise<void> {
  const post = (path: string, type: string, body: string) => {
    const headers = { 'content-type': type, 'sec-fetch-site': 'same-origin', origin: world.url }
    return zoe.send(`${world.url}${path}`, { method: 'POST', headers, body })
  }
  const keptIds = () => [...zoe.cookies.keys()].filter((name) => name.includes('-kept-')).map((name) => name.slice(-8))
  for (let forms = 0; forms < 3; forms += 1) await post('/echo;x=1', 'text/plain', 'typed')
  const [sent, declined, left] = keptIds()
  await zoe.signInAgain(`${world.url}/echo`)
  await post('/echo;x=1', 'text/plain', `gatehouse-kept-request=${sent}\r\n`)
  await post('/.gatehouse/kept-request', 'application/x-www-form-urlencoded', `id=${declined}`)

  assert.notEqual(left, undefined)
  const samir = world.browser('samir')
  for (const [name, cookie] of zoe.cookies) if (name.includes('-kept-')) samir.cookies.set(name, cookie)
  await samir.signInAgain(`${world.url}/echo`)
}

test('The audit log names who was denied and the line of the configuration that denied it', async (t) => {
  const world = await startWorld(t)
  const zoe = world.browser('zoe')
  await zoe.get(`${world.url}/echo`)

  const { body } = await zoe.send(`${world.url}/admin/reports;jsessionid=SECRET?token=SECRET`)

  const [denied, ...more] = named(world, 'access.denied')
  const [created] = named(world, 'session.created')
  assert.equal(more.length, 0)
  const { request, rule, ...rest } = denied ?? {}
  assert.ok(body.includes(String(request)), 'the page shows the id of the request')
  const [, file = '', line = ''] = /^(.+):(\d+)$/.exec(String(rule)) ?? []
  assert.match(readFileSync(file, 'utf8').split('\n')[Number(line) - 1] ?? '', /path: \/admin\/\*/)
  assert.deepEqual(rest, {
    level: 'info',
    time: '2026-01-02T03:04:05.678Z',
    msg: 'access.denied',
    audit: true,
    audit_version: 1,
    session: created?.['session'],
    iss: world.provider.issuer,
    sub: 'zoe',
    sid: created?.['sid'],
    code: 'ERR_FORBIDDEN',
    reason: 'fields.groups: holds none of admins',
    upstream: 'orders',
    method: 'GET',
    path: '/admin/reports;…',
    client: '127.0.0.1',
  })
})

test('Repeated denials are one event with their number', async (t) => {
  const world = await startWorld(t)
  const zoe = world.browser('zoe')
  await zoe.get(`${world.url}/echo`)
  for (let times = 0; times < 30; times += 1) await zoe.send(`${world.url}/admin/${times}`)
  await world.replicas[0]?.stop()

  const [first, rest, ...more] = named(world, 'access.denied')
  assert.equal(more.length, 0)
  assert.deepEqual([first?.['path'], first?.['repeated']], ['/admin/0', undefined])
  assert.deepEqual([rest?.['path'], rest?.['repeated']], ['/admin/29', 29])
  const validate = validators.get('access.denied')
  assert.ok(validate?.(rest), ajv.errorsText(validate?.errors))
})

test('A session and its end name the requests that caused them', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  await world.provider.endSession(session?.sid ?? '')

  const [replica] = world.replicas
  const lineOf = (path: string) => replica?.access.find((line) => line['path'] === path)
  await until('all lines', () => lineOf('/.gatehouse/backchannel-logout') !== undefined)
  const [created, ended, obeyed] = ['session.created', 'session.ended', 'logout_token.obeyed'].map(
    (name) => named(world, name)[0],
  )
  assert.equal(created?.['request'], lineOf('/.gatehouse/callback')?.['request'])
  assert.equal(ended?.['request'], lineOf('/.gatehouse/backchannel-logout')?.['request'])
  assert.equal(obeyed?.['request'], ended?.['request'])
  assert.equal(ended?.['session'], created?.['session'])
})
