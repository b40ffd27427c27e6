import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exchangeRaw, headerOf } from '../support/raw-exchange.ts'
import { startWorld, type World } from '../support/world.ts'

const upstreamSettings = 'rules: [{ path: /echo, access: public }]'

async function send(world: World, head: string): Promise<{ status: number | undefined; text: string }> {
  const { statuses, text } = await exchangeRaw(Number(new URL(world.url).port), head.replaceAll('\n', '\r\n'))
  return { status: statuses[0], text }
}

test('HTTP/1.0 without Host is served as a request for the host of external_url', async (t) => {
  const world = await startWorld(t, { upstreamSettings })
  const { host } = new URL(world.url)

  const { status, text } = await send(world, 'GET /echo HTTP/1.0\n\n')
  assert.equal(status, 200)
  assert.match(text, new RegExp(`"host",\\s*"${host}"`, 'i'))
  assert.equal((await send(world, 'OPTIONS /echo HTTP/1.0\n\n')).status, 200)
  assert.equal((await send(world, 'GET /other HTTP/1.0\n\n')).status, 401)
  assert.equal((await send(world, 'GET /echo HTTP/1.1\n\n')).status, 400)
  assert.equal((await send(world, 'GET /echo HTTP/1.0\nHost: a\nHost: b\n\n')).status, 400)
})

test('A Host with an empty port equals the Host without a port', async (t) => {
  const world = await startWorld(t, { upstreamSettings })

  const { status, text } = await send(world, 'GET /echo HTTP/1.1\nHost: orders.example.com:\nConnection: close\n\n')
  assert.equal(status, 200)
  assert.match(text, /"host",\s*"orders\.example\.com"/i)
  assert.match(text, /"x-forwarded-host",\s*"orders\.example\.com"/i)
})

test('The gateway responds to OPTIONS * itself, and does not forward it', async (t) => {
  const world = await startWorld(t, { upstreamSettings: 'rules: [{ path: /*, access: public }]' })
  const { host } = new URL(world.url)

  const { status, text } = await send(world, `OPTIONS * HTTP/1.1\nHost: ${host}\nConnection: close\n\n`)
  assert.equal(status, 200)
  assert.equal(headerOf(text, 'content-length'), '0')
  assert.equal((await send(world, 'OPTIONS * HTTP/1.0\n\n')).status, 200)
  assert.equal((await send(world, `GET * HTTP/1.1\nHost: ${host}\nConnection: close\n\n`)).status, 400)
  assert.equal(
    (await send(world, `OPTIONS * HTTP/1.1\nHost: ${host}\nConnection: upgrade\nUpgrade: websocket\n\n`)).status,
    404,
  )
  assert.deepEqual(
    world.replicas[0]?.log.filter(({ message }) => message === 'request.refused').map(({ fields }) => fields['code']),
    ['ERR_REQUEST_TARGET', 'ERR_NO_ROUTE'],
  )
})
