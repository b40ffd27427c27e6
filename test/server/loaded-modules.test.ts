import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Browser } from '../support/browser.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'

test('A gateway that has signed somebody in has loaded neither the HTTP client of Node.js nor HTTP/2', async (t) => {
  const { url, file, folder, env } = await prepareGateway(t)
  const [preload, list] = [join(folder, 'preload.cjs'), join(folder, 'loaded.json')]
  writeFileSync(
    preload,
    `process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(list)}, JSON.stringify(process.moduleLoadList)))`,
  )
  const gateway = startCommand(t, ['run', '--config', file], {
    env: { ...env, NODE_OPTIONS: `--require=${preload}` },
  })
  await gateway.said('gatehouse is ready')
  const { status } = await new Browser('jane').get(url)
  assert.equal(status, 200)
  gateway.child.kill('SIGTERM')
  await gateway.ended

  const loaded = JSON.parse(readFileSync(list, 'utf8')) as readonly string[]
  assert.ok(loaded.includes('NativeModule http'))
  const unwanted = ['NativeModule internal/deps/undici/undici', 'NativeModule http2']
  assert.deepEqual(
    unwanted.filter((name) => loaded.includes(name)),
    [],
  )
})
