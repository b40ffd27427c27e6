import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { request } from 'undici'
import { Browser } from '../support/browser.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'

test('With sessions in memory and no configured key, a reload never signs people out', async (t) => {
  const around = await prepareGateway(t)
  const text = readFileSync(around.file, 'utf8').replace(/^ {2}keys: .*\n/m, '')
  writeFileSync(around.file, text)
  const gateway = startCommand(t, ['run', '--config', around.file], { env: around.env })
  await gateway.said('gatehouse is ready')
  const jane = new Browser('jane')
  await jane.get(`${around.url}/`)

  writeFileSync(around.file, text.replace('X-Remote-User: sub', 'X-Remote-User: "user:{sub}"'))
  gateway.child.kill('SIGHUP')
  await gateway.said('config.reloaded')
  const visit = await request(`${around.url}/`, { headers: { cookie: jane.cookieHeader } })

  assert.equal(visit.statusCode, 200)
  assert.equal(await visit.body.text(), 'for user:jane')
})
