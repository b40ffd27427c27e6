import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:http2'
import { createConnection } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { audience, startApi } from '../support/api-world.ts'

const rules = `[{ path: /mcp, mcp: { call: ['delete_*'] }, access_tokens: { scopes: [admin] } },
      { path: /mcp, access_tokens: { scopes: [read] } }]`
const api = {
  ...{ accessTokens: `{ audience: [${audience}], metadata: true }`, rules, upstream: 'path: /mcp', isHttp2: true },
}
const call = (name: string | string[]) => ({
  ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name },
})

test('A tool needs the scope of its rule, and the application gets the fields as they were sent', async (t) => {
  const world = await startApi(t, api)
  const send = (fields: Record<string, string | string[]>, scope: string) =>
    world.send('/mcp', { authorization: `Bearer ${world.token({ scope })}`, ...fields }, 'POST')

  assert.equal((await send(call('get_user'), 'read')).status, 200)
  assert.equal((await send(call('delete_user'), 'read admin')).status, 200)
  const denied = await send(call('delete_user'), 'read')

  assert.deepEqual(
    [denied.status, denied.challenge],
    [
      403,
      `Bearer error="insufficient_scope", scope="admin", resource_metadata="${world.url}/.well-known/oauth-protected-resource/mcp"`,
    ],
  )
  assert.deepEqual(
    world.seen.map((headers) => [headers['mcp-protocol-version'], headers['mcp-method'], headers['mcp-name']]),
    [
      ['2026-07-28', 'tools/call', 'get_user'],
      ['2026-07-28', 'tools/call', 'delete_user'],
    ],
  )
  const metadata = await world.send('/.well-known/oauth-protected-resource/mcp')
  const { scopes_supported } = JSON.parse(metadata.body) as Readonly<Record<string, unknown>>
  assert.deepEqual(scopes_supported, ['read'], 'the scope of a tool is in the challenge about it')
})

for (const [why, fields] of [
  ['of an older revision', { 'mcp-protocol-version': '2025-06-18', 'mcp-session-id': 'a' }],
  ['with two names', call(['get_user', 'delete_user'])],
  ['with two equal names', call(['get_user', 'get_user'])],
  ['with two revisions', { ...call('get_user'), 'mcp-protocol-version': ['2026-07-28', '2026-07-28'] }],
  ['with a name that CGI reads', { ...call('get_user'), Mcp_Name: 'delete_user' }],
] satisfies [string, Record<string, string | string[]>][])
  test(`A request ${why} is refused, over HTTP/1.1 and HTTP/2`, async (t) => {
    const world = await startApi(t, api)
    const headers = { authorization: `Bearer ${world.token({ scope: 'read admin' })}`, accept: '*/*', ...fields }

    const first = await world.send('/mcp', headers, 'POST')
    const http2 = connect(world.url)
    t.after(() => http2.destroy())
    const stream = http2.request({ ':method': 'POST', ':path': '/mcp', ...headers })
    const [second] = (await once(stream.end(), 'response')) as [Record<string, unknown>]
    const content = await text(stream)
    http2.close()

    assert.deepEqual([first.status, second[':status']], [400, 400])
    assert.match(first.body, /this MCP request/)
    assert.match(content, /this MCP request/)
    assert.equal(world.seen.length, 0)
  })

for (const [what, name, status] of [
  ['with a percent sign is that name', 'delete%5Fuser', 200],
  ['that begins with a percent sign is that name', '%64elete_user', 200],
  ['with spaces inside is that name', 'get the user', 200],
  ['in spaces is the name', ' delete_user ', 403],
  ['with a tab is refused', 'get\tuser', 400],
  ['that encodes a line break is refused', '=?base64?ZGVsZXRlXwp1c2Vy?=', 400],
  ['with bytes above ASCII is refused', 'caf\u00e9', 400],
  ['of 10 kB is refused', 'a'.repeat(10_240), 400],
] as const)
  test(`A name ${what}`, async (t) => {
    const world = await startApi(t, api)
    const headers = { authorization: `Bearer ${world.token({ scope: 'read' })}`, accept: '*/*', ...call(name) }

    const response = await world.send('/mcp', headers, 'POST')

    assert.equal(response.status, status, response.body)
    if (status === 400) assert.match(response.body, /this MCP request/)
    assert.deepEqual(
      world.seen.map((fields) => fields['mcp-name']),
      status === 200 ? [name] : [],
    )
  })

for (const [what, byte] of [
  ['NUL', 0],
  ['CR', 13],
  ['ESC', 27],
  ['DEL', 127],
] as const)
  test(`A name with ${what} reaches no rule`, async (t) => {
    const world = await startApi(t, api)
    const socket = createConnection(Number(new URL(world.url).port), '127.0.0.1')
    t.after(() => socket.destroy())
    const fields = Object.entries(call(`get_${String.fromCharCode(byte)}user`)).map(
      ([name, value]) => `${name}: ${value}`,
    )
    const lines = ['POST /mcp HTTP/1.1', `Host: ${new URL(world.url).host}`, 'Content-Length: 0', 'Connection: close']
    const authorization = `Authorization: Bearer ${world.token({ scope: 'read admin' })}`

    socket.write([...lines, authorization, ...fields, '', ''].join('\r\n'), 'latin1')

    assert.match(await text(socket), /^HTTP\/1\.1 400 /)
    assert.equal(world.seen.length, 0)
  })

test('A field that the connection drops before the application is not believed', async (t) => {
  const world = await startApi(t, api)
  const authorization = `Bearer ${world.token({ scope: 'read admin' })}`
  const headers = { authorization, ...call('get_user'), connection: 'close, Mcp-Name' }

  const sent = request(`${world.url}/mcp`, { method: 'POST', headers }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]

  assert.equal(response.statusCode, 400)
  assert.match(await text(response), /this MCP request/)
  assert.equal(world.seen.length, 0)
})
