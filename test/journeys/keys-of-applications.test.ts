import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { request } from 'undici'
import WebSocket, { WebSocketServer } from 'ws'
import { makeKey, startKeyWorld } from '../support/key-world.ts'

// Programs whose application has credentials of its own. They send the key in another header: the
// documented requests of their clients, played by a script.

const token = 'eyJhbGciOiJIUzI1NiJ9.own.token'

/** An application that issues a token of its own, and wants it with each further request. */
async function startApplication(t: TestContext, tokenPath: string) {
  const seen: IncomingMessage['headers'][] = []
  const server = createServer((req, res) => {
    seen.push(req.headers)
    const isOpen = req.url === tokenPath || req.url?.startsWith('/identity/accounts/prelogin') === true
    if (!isOpen && req.headers.authorization !== `Bearer ${token}`) return void res.writeHead(401).end()
    let content = ''
    req.setEncoding('utf8').on('data', (text: string) => (content += text))
    req.on('end', () =>
      res.end(req.url === tokenPath ? JSON.stringify({ access_token: token }) : `${req.method} ${content}`),
    )
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, { url = '', headers }) => {
    seen.push(headers)
    if (url.includes(`access_token=${token}`)) socket.send('authorized by address')
    socket.on('message', (message) =>
      socket.send(String(message).includes(token) ? '{"type":"auth_ok"}' : '{"type":"auth_invalid"}'),
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.close()
  })
  const upstream = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const world = await startKeyWorld(t, {
    upstream,
    headers: '{ X-Remote-User: sub }',
    upstreamSettings: 'keys: { header: X-Api-Key }\n    rules: [{ path: /*, keys: true }]',
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const key = { 'x-api-key': await makeKey(jane, world) }
  const send = async (method: string, path: string, type?: string, body?: string) => {
    const own = path === tokenPath ? {} : { authorization: `Bearer ${token}` }
    const headers = { ...key, ...own, ...(type !== undefined && { 'content-type': type }) }
    const response = await request(world.url + path, { method: method as 'GET', headers, body: body ?? null })
    return { status: response.statusCode, body: await response.body.text() }
  }
  const socketAt = (path: string) => {
    const socket = new WebSocket(world.url.replace('http', 'ws') + path, { headers: key })
    t.after(() => socket.terminate())
    return socket
  }
  const gotNoKey = () => assert.ok(!JSON.stringify(seen).includes(key['x-api-key']))
  return { send, socketAt, gotNoKey }
}

const form = 'application/x-www-form-urlencoded'
const json = 'application/json'

test('A client of Home Assistant renews its token, calls the API, and opens its WebSocket', async (t) => {
  const { send, socketAt, gotNoKey } = await startApplication(t, '/auth/token')

  const renewed = await send(
    'POST',
    '/auth/token',
    form,
    'grant_type=refresh_token&refresh_token=r&client_id=https%3A%2F%2Fhome-assistant.io%2Fandroid',
  )
  assert.equal((JSON.parse(renewed.body) as { access_token: string }).access_token, token)
  assert.equal((await send('GET', '/api/states')).status, 200)
  assert.equal(
    (await send('POST', '/api/services/light/turn_on', json, '{"entity_id":"light.kitchen"}')).body,
    'POST {"entity_id":"light.kitchen"}',
  )
  const socket = socketAt('/api/websocket')
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'auth', access_token: token }))
  const [message] = await once(socket, 'message')
  assert.equal(String(message), '{"type":"auth_ok"}')
  gotNoKey()
})

test('A client of Vaultwarden signs in at its application, synchronizes, and hears of changes', async (t) => {
  const { send, socketAt, gotNoKey } = await startApplication(t, '/identity/connect/token')

  assert.equal((await send('POST', '/identity/accounts/prelogin', json, '{"email":"jane@example.com"}')).status, 200)
  const granted = await send(
    'POST',
    '/identity/connect/token',
    form,
    'grant_type=password&username=jane%40example.com&password=hash&scope=api%20offline_access&client_id=mobile',
  )
  assert.equal((JSON.parse(granted.body) as { access_token: string }).access_token, token)
  assert.equal((await send('GET', '/api/sync?excludeDomains=true')).status, 200)
  assert.equal((await send('PUT', '/api/ciphers/1', json, '{"name":"2.x"}')).body, 'PUT {"name":"2.x"}')
  const [message] = await once(socketAt(`/notifications/hub?access_token=${token}`), 'message')
  assert.equal(String(message), 'authorized by address')
  gotNoKey()
})
