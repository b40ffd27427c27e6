// Slow: 3 s, the demo is a process of its own
import assert from 'node:assert/strict'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Browser } from '../support/browser.ts'
import { folderWith } from '../support/command-line.ts'
import { root, startCommand } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { startRedis } from '../support/redis.ts'
import { openEventStream } from '../support/streams.ts'

/** A file for a demo on free ports; `more` is added to the settings of the upstream. */
async function demoFile(t: TestContext) {
  const [port, provider, upstream] = [await freePort(), await freePort(), await freePort()]
  const textWith = (more: string, issuerPort = provider) => `version: 1
listen: 127.0.0.1:${port}
external_url: http://127.0.0.1:${port}
provider: { issuer: 'http://127.0.0.1:${issuerPort}', client_id: demo, client_secret: { env: DEMO_CLIENT_SECRET }, signals: {} }
upstreams:
  demo:
    url: http://127.0.0.1:${upstream}
    headers: { X-Remote-User: sub }
    ${more}
`
  const file = join(folderWith(t, { 'gateway.yaml': textWith('') }), 'gateway.yaml')
  return {
    url: `http://127.0.0.1:${port}`,
    provider: `http://127.0.0.1:${provider}`,
    file,
    write: (more: string, issuerPort?: number) => writeFileSync(file, textWith(more, issuerPort)),
  }
}

test('The demo does not start with a file whose tests fail', async (t) => {
  const { file, write } = await demoFile(t)
  write('tests: [{ get: /orders, expect: pass }]')

  const demo = startCommand(t, ['demo', '--config', file])

  assert.equal(await demo.ended, 1)
  assert.match(demo.err(), /gateway\.yaml:\d+:\d+ +error .*GET \/orders: expected pass, but the outcome is sign_in/)
  assert.equal(demo.out(), '')
})

test('The demo applies changes of its file, logs settings that need a restart, and explain finds a request in its log', async (t) => {
  const { url, file, write } = await demoFile(t)
  const demo = startCommand(t, ['demo', '--config', file])
  await demo.prints('The gateway applies changes of the file within seconds')

  write('rules: [{ path: /admin/*, require: { claim: sub, any_of: [nobody] } }]')
  demo.child.kill('SIGHUP')
  await demo.prints('"config.reloaded"')
  const refused = await new Browser('jane').get(`${url}/admin/users`)
  write('tests: [{ get: /orders, expect: pass }]')
  demo.child.kill('SIGHUP')
  await demo.prints('"config.rejected"')
  write('', await freePort())
  demo.child.kill('SIGHUP')
  await demo.prints('"settings":["the demo provider and the demo application"]')
  demo.child.kill('SIGTERM')

  assert.equal(await demo.ended, 0)
  assert.equal(refused.status, 403)
  const id = /Request ID ([\w-]+)/.exec(refused.body)?.[1] ?? assert.fail(refused.body)
  const log = join(folderWith(t, { 'gateway.log': demo.out() }), 'gateway.log')
  const explained = startCommand(t, ['explain', '--log', log, id])
  assert.equal(await explained.ended, 0, explained.err())
  assert.match(explained.out(), /GET 127\.0\.0\.1\/admin\/users, with the session .*status 403 by the gateway/)
})

test('An account that is disabled at the demo provider ends the open page, until it is enabled again', async (t) => {
  const { url, provider, file } = await demoFile(t)
  const demo = startCommand(t, ['demo', '--config', file])
  await demo.prints('The gateway applies changes of the file within seconds')
  const press = async (button: string) => {
    const body = new URLSearchParams({ person: 'jane' })
    return (await fetch(`${provider}/accounts/${button}`, { method: 'POST', body })).text()
  }
  const jane = new Browser('jane')
  await jane.get(`${url}/`)
  const stream = await openEventStream(t, `${url}/events`, jane.cookieHeader)

  const page = await press('disable')

  assert.match(page, /account disabled; the application responded to the security event with 202/)
  await stream.ended
  const refused = await jane.get(`${url}/`)
  assert.equal(refused.status, 403)
  assert.match(refused.body, /Jane Doe cannot sign in/)
  assert.doesNotMatch(await press('enable'), /Disabled accounts/)
  assert.match((await jane.get(`${url}/`)).body, /Stock Ledger/)
})

test('The demo says that it starts no workers', async (t) => {
  const { file } = await demoFile(t)
  const redis = await startRedis(t)
  const more = `workers: 3\nsession: { keys: [{ env: SESSION_KEY }], store: { redis: { url: ${redis.url} } } }\n`
  writeFileSync(file, readFileSync(file, 'utf8') + more)
  const env = { SESSION_KEY: Buffer.alloc(32, 1).toString('base64') }
  const demo = startCommand(t, ['demo', '--config', file], { env })

  await demo.prints('Stop it with Ctrl+C. The demo is one process; gatehouse run starts 3 workers with this file.')
})

test('An installation without the demo says so, and says where to get it, before it reads a file', async (t) => {
  const folder = folderWith(t, {})
  cpSync(join(root, 'dist'), join(folder, 'dist'), {
    recursive: true,
    filter: (path) => path !== join(root, 'dist', 'demo'),
  })
  for (const name of ['package.json', 'schemas']) symlinkSync(join(root, name), join(folder, name))

  const demo = startCommand(t, ['demo', '--config', 'no-such-file.yaml'], {
    program: [process.execPath, join(folder, 'dist', 'main.js')],
    cwd: folder,
  })

  assert.equal(await demo.ended, 1)
  assert.equal(
    demo.err(),
    'gatehouse: the demo is not part of this installation; clone the sources and run npm start\n',
  )
})
