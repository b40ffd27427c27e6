import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDemo } from '../../../examples/demo/demo.ts'
import { post_logout_redirect_uri, redirect_uri } from './support.ts'

const host = '127.0.0.1'
const provider = {
  client_id: 'demo',
  client_secret: 'correct horse',
  redirect_uris: [redirect_uri],
  post_logout_redirect_uris: [post_logout_redirect_uri],
  backchannel_logout_uri: 'http://127.0.0.1:8080/.gatehouse/backchannel-logout',
  host,
  port: 0,
}

test('The demo starts both servers, and the application links to the provider', async (t) => {
  const demo = await startDemo({ provider, upstream: { host, port: 0 } })
  t.after(() => demo.close())

  const page = await (await fetch(demo.upstream?.url ?? assert.fail())).text()

  assert.ok(page.includes(`href="${demo.provider.issuer}/"`))
  assert.equal((await fetch(`${demo.provider.issuer}/.well-known/openid-configuration`)).status, 200)
})

test('A port in use is an error that says what to do; no server keeps running', async (t) => {
  const demo = await startDemo({ provider, upstream: { host, port: 0 } })
  t.after(() => demo.close())
  const taken = Number(new URL(demo.provider.issuer).port)
  const free = await freePort()

  const second = startDemo({ provider: { ...provider, port: taken }, upstream: { host, port: free } })

  await assert.rejects(second, {
    name: 'OperatorError',
    message:
      `The demo provider cannot listen on 127.0.0.1:${taken}: port ${taken} is taken. ` +
      'Is a demo running already? Stop the program that uses it, or choose another port in provider.issuer.',
  })
  await assert.rejects(fetch(`http://127.0.0.1:${free}/`))
})

test('A host that is not loopback is an error; no server keeps running', async () => {
  const free = await freePort()

  const started = startDemo({ provider: { ...provider, port: free }, upstream: { host: '192.0.2.1', port: 0 } })

  await assert.rejects(started, { name: 'OperatorError', message: /listens on loopback only/ })
  await assert.rejects(fetch(`http://127.0.0.1:${free}/`))
})

test('A program that listens at the address of the application takes its place', async (t) => {
  const demo = await startDemo({ provider, upstream: { host, port: 0 } })
  t.after(() => demo.close())

  const second = await startDemo({ provider, upstream: { host, port: Number(demo.upstream?.url.port) } })

  assert.equal(second.upstream, undefined)
  await second.close()
  assert.equal((await fetch(demo.upstream?.url ?? assert.fail())).status, 200, 'it runs on')
})

test('An issuer with a path is rejected', async () => {
  const issuer = new URL('http://127.0.0.1:8081/realms/demo')

  const started = startDemo({ provider: { ...provider, issuer }, upstream: { host, port: 0 } })

  await assert.rejects(started, { name: 'OperatorError', message: /plain origin/ })
})

/** A port that was free when this was called. */
async function freePort(): Promise<number> {
  const { upstream, close } = await startDemo({ provider, upstream: { host, port: 0 } })
  await close()
  return Number(upstream?.url.port)
}
