import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { test, type TestContext } from 'node:test'
import { scripts } from '../../src/session/store/redis/scripts.ts'
import { startFormApplication } from '../support/form-application.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

/** A way to a server that breaks once, after the server has received one of the texts. */
async function startBreakingWay(t: TestContext, target: number, texts: readonly string[]) {
  let isBroken = false
  const way = createServer((client) => {
    const server = connect(target, '127.0.0.1')
    let isCut = false
    for (const socket of [client, server])
      socket
        .on('error', () => {})
        .on('close', () => {
          client.destroy()
          server.destroy()
        })
    client.on('data', (bytes) => {
      isCut = !isBroken && texts.some((text) => bytes.includes(text))
      isBroken ||= isCut
      server.write(bytes)
    })
    server.on('data', (bytes) => (isCut ? client.destroy() : client.write(bytes)))
  }).listen(0, '127.0.0.1')
  t.after(() => way.close())
  await once(way, 'listening')
  return { port: (way.address() as AddressInfo).port, isBroken: () => isBroken }
}

test('When the connection to Redis breaks while a form is taken, no page says that the form was sent', async (t) => {
  const application = await startFormApplication(t)
  const redis = await startRedis(t)
  const script = scripts.keptTake
  const texts = [script.trim(), ...[script, script.trim()].map((text) => createHash('sha1').update(text).digest('hex'))]
  const way = await startBreakingWay(t, redis.port, texts)
  const throughWay = { ...redis, port: way.port, url: `redis://127.0.0.1:${way.port}` }
  const world = await startWorld(t, { upstream: application.url, store: 'redis', redis: throughWay })
  const jane = world.browser()
  await jane.get(`${world.url}/forms`)
  for (const { sid } of world.provider.sessions()) await world.provider.endSession(sid)
  const post = (url: string, type: string, body: string) => {
    const headers = { 'content-type': type, 'sec-fetch-site': 'same-origin', origin: world.url }
    return jane.send(url, { method: 'POST', headers, body })
  }
  const kept = await post(`${world.url}/orders`, 'text/plain', 'item=saw')
  const [, reference = ''] = /gatehouse-kept-([\w-]{8})=/.exec(String(kept.headers['set-cookie'])) ?? assert.fail()
  await jane.signInAgain(`${world.url}/forms`)
  const send = () => post(`${world.url}/orders`, 'text/plain', `gatehouse-kept-request=${reference}\r\n`)

  assert.deepEqual([(await send()).status, way.isBroken()], [503, true])

  await until('Redis is available again', async () => (await send()).status === 303)
  const page = await jane.get(`${world.url}/.gatehouse/kept-request?id=${reference}`)
  assert.match(page.body, /What you entered may have been sent already\./)
  assert.deepEqual(application.received, [])
})
