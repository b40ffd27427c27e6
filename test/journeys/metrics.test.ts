import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseMetrics, readMetrics } from '../support/metrics.ts'
import { openEventStream, openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

const settings = 'admin: { listen: 127.0.0.1:0 }'

function adminUrl(world: World): string {
  return `http://127.0.0.1:${world.replicas[0]?.gateway.adminAddress?.port}`
}

test('The metrics show a journey from sign-in to logout', async (t) => {
  const world = await startWorld(t, { store: 'redis', settings })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 10))
  const zoe = world.browser('zoe')
  await zoe.get(`${world.url}/echo`)
  await zoe.send(`${world.url}/admin/`)
  await zoe.send(`${world.url}/status/503`, { method: 'POST', body: 'x' })
  world.moveClock(11_000)
  await zoe.fetch(`${world.url}/echo`)
  const socket = await openWebSocket(t, `${world.url}/ws`, zoe.cookieHeader)
  await openEventStream(t, `${world.url}/events`, zoe.cookieHeader)

  const open = await readMetrics(adminUrl(world))
  const [session] = world.provider.sessions()
  await world.provider.endSession(session?.sid ?? '')
  await socket.ended
  await world.postLogoutToken({ logout_token: 'none' })
  await world.browser().send(`${world.url}/.gatehouse/callback?code=x&state=y`)
  await world.browser().send(`${world.url}/%zz`)
  let after = open
  await until('the streams are gone', async () => {
    after = await readMetrics(adminUrl(world))
    return (
      after.value('gatehouse_open_streams{kind="tunnel"}') +
        after.value('gatehouse_open_streams{kind="event_stream"}') ===
      0
    )
  })

  assert.equal(open.value('gatehouse_open_streams{kind="tunnel"}'), 1)
  assert.equal(open.value('gatehouse_open_streams{kind="event_stream"}'), 1)
  assert.equal(open.value('gatehouse_requests_total{upstream="orders",method="GET",status="2xx"}'), 2)
  assert.equal(open.value('gatehouse_requests_total{upstream="orders",method="GET",status="4xx"}'), 1)
  assert.equal(open.value('gatehouse_requests_total{upstream="orders",method="POST",status="5xx"}'), 1)
  assert.equal(open.value('gatehouse_requests_total{upstream="none",method="GET",status="3xx"}'), 3)
  assert.equal(open.value('gatehouse_request_duration_seconds_count{upstream="orders"}'), 4)
  assert.equal(open.value('gatehouse_refusals_total{code="ERR_FORBIDDEN"}'), 1)
  assert.equal(open.value('gatehouse_sessions_created_total'), 1)
  assert.equal(open.value('gatehouse_refreshes_total{outcome="refreshed"}'), 1)
  assert.equal(open.value('gatehouse_provider_requests_total{endpoint="token",outcome="ok"}'), 2)
  assert.equal(open.value('gatehouse_provider_requests_total{endpoint="userinfo",outcome="ok"}'), 2)
  assert.equal(open.value('gatehouse_provider_known{provider="provider"}'), 1)
  assert.equal(open.value('gatehouse_store_available'), 1)
  assert.ok(open.value('gatehouse_store_duration_seconds_count{operation="create"}') === 1)
  assert.equal(open.value('gatehouse_cache_entries{cache="sessions"}'), 1)
  assert.ok(open.value('gatehouse_background_runs_total{work="discovery"}') > 0)
  assert.ok(open.value('process_resident_memory_bytes') > 10_000_000)
  assert.ok(open.value('process_cpu_seconds_total') > 0)
  assert.ok(Math.abs(open.value('process_start_time_seconds') - (Date.now() / 1000 - process.uptime())) < 5)

  assert.equal(after.value('gatehouse_sessions_ended_total{by="provider"}'), 1)
  assert.equal(after.value('gatehouse_logout_tokens_total{outcome="obeyed"}'), 1)
  assert.equal(after.value('gatehouse_logout_tokens_total{outcome="refused"}'), 1)
  assert.equal(after.value('gatehouse_sign_ins_failed_total{code="ERR_SIGN_IN_EXPIRED"}'), 1)
  assert.equal(after.value('gatehouse_requests_total{upstream="orders",method="GET",status="1xx"}'), 1)
  assert.equal(after.value('gatehouse_active_requests'), 0)
  assert.ok(after.value('gatehouse_log_events_total{level="warn",event="request.refused"}') >= 1)
})

test('The metrics show that the store was lost and is back, without other requests', async (t) => {
  const world = await startWorld(t, { store: 'redis', settings })
  const isAvailable = async () => (await readMetrics(adminUrl(world))).value('gatehouse_store_available')
  assert.equal(await isAvailable(), 1)

  await world.redis?.kill()
  assert.equal(await isAvailable(), 0)
  assert.ok((await readMetrics(adminUrl(world))).value('gatehouse_store_errors_total{operation="ping"}') > 0)
  await world.redis?.restart()

  await until('it is back', async () => (await isAvailable()) === 1)
})

test('Only the administration address serves metrics', async (t) => {
  const world = await startWorld(t, { settings })

  assert.equal((await world.browser().send(`${world.url}/metrics`)).status, 303)
  assert.equal((await world.browser().send(`${world.url}/.gatehouse/metrics`)).status, 404)
  assert.ok(parseMetrics(await (await fetch(`${adminUrl(world)}/metrics`)).text()).types.size > 20)
})
