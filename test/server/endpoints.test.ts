import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RawClient, rawUpstream } from '../proxy/support.ts'
import { startWorld } from '../support/world.ts'

test('HEAD of the endpoints returns the header fields of GET, without content', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  for (const [browser, path, status] of [
    [jane, 'session', 200],
    [world.browser(), 'session', 401],
    [jane, 'signed-out', 200],
    [world.browser(), 'sign-in?return_to=%2Fecho', 303],
  ] as const) {
    const url = `${world.url}/.gatehouse/${path}`
    const get = await browser.send(url)
    const head = await browser.send(url, { method: 'HEAD' })

    assert.equal(head.status, status, path)
    assert.equal(head.body, '')
    for (const name of ['content-type', 'content-length', 'cache-control', 'content-security-policy'])
      assert.equal(head.headers[name], get.headers[name], `${name} of ${path}`)
  }
})

for (const path of ['sign-in?return_to=%2Fecho', 'callback?state=unknown&code=x'])
  test(`GET ${path} gets the same response with content, which Node's server reads`, async (t) => {
    const world = await startWorld(t)
    const { port, host } = new URL(world.url)
    const responseTo = async (fields: string, content: string) => {
      const head = `GET /.gatehouse/${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\n${fields}Connection: close\r\n\r\n`
      const response = await new RawClient(t, Number(port)).send(head + content).untilClosed()
      const [status, ...rest] = response.slice(0, response.indexOf('\r\n\r\n')).split('\r\n')
      return { status, fields: rest.map((field) => field.split(':')[0]?.toLowerCase()).toSorted() }
    }

    const without = await responseTo('', '')

    assert.deepEqual(await responseTo('Content-Length: 3\r\n', 'a=b'), without)
    assert.match(String(without.status), path.startsWith('sign-in') ? /303/ : /400/)
  })

test('A Logout Token gets the same response in any number of parts, and so does the next request', async (t) => {
  const world = await startWorld(t)
  const { port, host } = new URL(world.url)
  const content = `logout_token=${'x'.repeat(900)}`
  const responsesTo = async (type: string, parts: (head: string) => readonly string[]) => {
    const head = [
      'POST /.gatehouse/backchannel-logout HTTP/1.1',
      ...[`Host: ${host}`, `Content-Type: ${type}`, `Content-Length: ${content.length}`, '', ''],
    ].join('\r\n')
    const next = `GET /.gatehouse/session HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
    const client = new RawClient(t, Number(port))
    for (const part of [...parts(head), next]) {
      client.send(part)
      await new Promise((resolve) => client.socket.write('', resolve))
    }
    return (await client.untilClosed()).replaceAll(/^(?:Date|X-Request-Id): .*|"request_id":"[^"]*"/gim, '')
  }

  const together = await responsesTo(form, (head) => [head + content])
  assert.match(together, /^HTTP\/1\.1 400 [^]+"error":"invalid_request"[^]+HTTP\/1\.1 401 /)
  for (const [type, parts] of [
    [form, (head: string) => [head, content]],
    [form, (head: string) => [head + content.slice(0, 500), content.slice(500)]],
    [`${form}; charset=iso-8859-1`, (head: string) => [head + content]],
    [`${form.toUpperCase()}; Charset=UTF-8`, (head: string) => [head + content]],
  ] as const)
    assert.equal(await responsesTo(type, parts), together)
})

const form = 'application/x-www-form-urlencoded'
for (const [what, method, path, type, content, status] of [
  ['a form of 16 KiB is read', 'POST', 'session', form, 16_384, 401],
  ['a longer one is refused', 'POST', 'session', form, 16_385, 413],
  ['so is one of an unknown length', 'POST', 'session', form, 'chunked', 413],
  ['a malformed Content-Type is refused', 'POST', 'session', 'x', 0, 415],
  ['content without a type is read', 'POST', 'session', undefined, 3, 401],
  ['an endpoint has its methods only', 'PUT', 'session', form, 3, 405],
  ['other paths have no endpoint', 'POST', 'nothing', form, 3, 404],
  ['nor has a path that only begins like one', 'GET', 'session/x', undefined, 0, 404],
  ['the case of a path matters', 'GET', 'Session', undefined, 0, 404],
] as const)
  test(`Endpoints: ${what} (${status})`, async (t) => {
    const world = await startWorld(t)
    const { port, host } = new URL(world.url)
    const [field, text] =
      content === 'chunked'
        ? ['Transfer-Encoding: chunked', `4001\r\n${'x'.repeat(0x4001)}\r\n0\r\n\r\n`]
        : [`Content-Length: ${content}`, 'x'.repeat(content)]
    const fields = [
      `Host: ${host}`,
      field,
      'Connection: close',
      ...(type === undefined ? [] : [`Content-Type: ${type}`]),
    ]

    const request = `${method} /.gatehouse/${path} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${text}`
    const response = await new RawClient(t, Number(port)).send(request).untilClosed()

    assert.match(response, new RegExp(`^HTTP/1\\.1 ${status} `))
    assert.equal(/^Allow: (.*)\r$/m.exec(response)?.[1], status === 405 ? 'GET, HEAD, POST' : undefined)
  })

for (const [what, field, first, rest] of [
  ['A form', 'Content-Length: 14', 'logout_token=', 'x'],
  ["A form that Node's server reads", 'Transfer-Encoding: chunked', 'd\r\nlogout_token=\r\n', '1\r\nx\r\n0\r\n\r\n'],
  [
    'A form that becomes too long',
    'Transfer-Encoding: chunked',
    '1\r\nx\r\n',
    `5000\r\n${'x'.repeat(0x5000)}\r\n0\r\n\r\n`,
  ],
] as const)
  test(`${what} is not carried out after its client got 408`, async (t) => {
    const world = await startWorld(t, { settings: 'limits: { body_idle_timeout: 1s }' })
    const { port, host } = new URL(world.url)
    const refused = () => world.replicas[0]?.log.filter(({ message }) => message === 'logout_token.refused').length
    const head = `POST /.gatehouse/backchannel-logout HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${form}\r\n`
    const client = new RawClient(t, Number(port)).send(`${head}${field}\r\n\r\n${first}`)
    await client.until(/ 408 /)

    const response = await client.send(rest).untilClosed()
    assert.equal(response.match(/^HTTP/gm)?.length, 1)
    assert.equal(refused(), 0)

    await world.postLogoutToken({ logout_token: 'x' })
    assert.equal(refused(), 1)
  })

test('HEAD neither completes a sign-in nor signs out', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  const callback = await jane.until(`${world.url}/echo`, '/.gatehouse/callback')

  assert.equal((await jane.send(callback, { method: 'HEAD' })).status, 405)
  await jane.get(callback)
  const signOut = await jane.send(`${world.url}/.gatehouse/sign-out`, {
    method: 'HEAD',
    headers: { 'sec-fetch-site': 'same-origin' },
  })

  assert.equal(signOut.status, 405)
  assert.equal(signOut.headers['allow'], 'GET, POST')
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
})

for (const path of ['/.gatehouse/x', '/.GateHouse/x'])
  test(`A WebSocket to ${path} never reaches the application, even if all its paths are public`, async (t) => {
    const received: string[] = []
    const upstream = await rawUpstream(t, (socket, head) => {
      received.push(head.slice(0, head.indexOf('\r\n')))
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    })
    const world = await startWorld(t, {
      upstream: new URL(`http://127.0.0.1:${upstream}`),
      upstreamSettings: 'rules: [{ path: /*, access: public }]',
    })
    const handshake = (target: string) =>
      `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`
    const responseTo = (target: string) =>
      new RawClient(t, Number(new URL(world.url).port)).send(handshake(target)).untilClosed()

    assert.match(await responseTo('/x'), /^HTTP\/1\.1 101 /)
    assert.match(await responseTo(path), /^HTTP\/1\.1 404 /)
    assert.deepEqual(received, ['GET /x HTTP/1.1'])
  })
