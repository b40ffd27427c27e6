import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RawClient } from '../proxy/support.ts'
import { startWorld } from '../support/world.ts'

const settings = 'limits: { body_idle_timeout: 1s }'
const head = (line: string, ...fields: string[]) =>
  [`${line} HTTP/1.1`, 'Host: 127.0.0.1', ...fields, '', ''].join('\r\n')
const form = 'Content-Type: application/x-www-form-urlencoded'

for (const [what, request, sent] of [
  ['not sent at all', head('POST /.gatehouse/backchannel-logout', form, 'Content-Length: 1000'), ''],
  ['half sent', head('POST /.gatehouse/sign-out', form, 'Content-Length: 1000'), 'logout'],
  ['half sent, in chunks', head('POST /.gatehouse/sign-out', form, 'Transfer-Encoding: chunked'), '2\r\nlo\r\n'],
  ['for an unknown endpoint', head('POST /.gatehouse/elsewhere', form, 'Content-Length: 1000'), 'logout'],
] as const) {
  test(`A form that never arrives gets 408, and the connection is closed: ${what}`, async (t) => {
    const { url } = await startWorld(t, { settings })

    const response = await new RawClient(t, Number(new URL(url).port)).send(request + sent).untilClosed()

    assert.match(response, /^HTTP\/1\.1 408 Request Timeout\r\n(?:.+\r\n)*?Connection: close\r\n/)
    assert.equal(response.split('HTTP/1.1').length - 1, 1)
  })
}

test('A form that arrives byte by byte has the same time limit', async (t) => {
  const { url } = await startWorld(t, { settings })
  const client = new RawClient(t, Number(new URL(url).port))
  client.send(head('POST /.gatehouse/sign-out', form, 'Content-Length: 1000'))
  const dripping = setInterval(() => client.send('a'), 100)
  t.after(() => clearInterval(dripping))

  assert.match(await client.untilClosed(), /^HTTP\/1\.1 408 /)
})

test('The connection is closed after the response when content is left unread', async (t) => {
  const { url } = await startWorld(t)

  const response = await new RawClient(t, Number(new URL(url).port))
    .send(head('GET /.gatehouse/session', 'Content-Length: 1000'))
    .untilClosed()

  assert.match(response, /^HTTP\/1\.1 401 Unauthorized\r\n(?:.+\r\n)*?Connection: close\r\n/)
})

test('A client that waits for 100 (Continue) gets it, and the connection stays open', async (t) => {
  const { url } = await startWorld(t)
  const client = new RawClient(t, Number(new URL(url).port))
  client.send(head('POST /.gatehouse/backchannel-logout', form, 'Expect: 100-continue', 'Content-Length: 14'))

  await client.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/)
  client.send('logout_token=x')
  const response = await client.until(/logout_token is invalid/)

  assert.match(response, /\r\nHTTP\/1\.1 400 Bad Request\r\n/)
  assert.match(response, /\r\nConnection: keep-alive\r\n/)
})
