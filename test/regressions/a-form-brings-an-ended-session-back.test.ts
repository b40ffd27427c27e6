import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { audienceOf, personMark } from '../../src/session/record/record.ts'
import { startSigningInApplication } from '../support/signing-in-application.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

// The page that asks for a password wrote into the record of a session that the provider had not
// confirmed. That counted as a confirmation.
test('A session that has ended stays ended when an older copy of Redis brings it back, whatever its browser sends', async (t) => {
  const application = await startSigningInApplication(t)
  const world = await startWorld(t, {
    upstream: application.url,
    store: 'redis',
    upstreamSettings: `session_cookies: [APP, browser]
    application_sign_in: { page: /login, fields: { user: "{username}", pass: "{password}" } }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  const redis = world.redis ?? assert.fail()
  const direct = new Redis(redis.port, '127.0.0.1')
  await direct.save()
  direct.disconnect()
  const sid = world.provider.sessions().at(-1)?.sid ?? ''
  assert.deepEqual(await world.provider.endSession(sid), { kind: 'delivered', status: 200 })
  await redis.restart()
  const { url } = await world.startReplica()

  const person = personMark(audienceOf({ issuer: world.provider.issuer, client_id: 'orders' }), 'jane')
  const post = (fields: Readonly<Record<string, string>>) =>
    jane.send(`${url}/.gatehouse/application-sign-in`, {
      method: 'POST',
      headers: {
        host: new URL(world.url).host,
        'content-type': 'application/x-www-form-urlencoded',
        'sec-fetch-site': 'same-origin',
      },
      body: new URLSearchParams({ upstream: 'orders', return_to: '/orders', person, ...fields }).toString(),
    })
  await until('the store responds', async () => (await post({ decline: '1' })).status === 303)
  await post({ password: 'of a thief' })

  const audited = world.replicas.flatMap(({ log }) => log).filter(({ message }) => message === 'application.secret')
  assert.deepEqual(audited, [])
  assert.equal((await jane.fetch(`${url}/orders`)).status, 401)
  assert.deepEqual(application.requests.slice(1), [])
})
