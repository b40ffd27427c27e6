import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { type ApiWorld, audience, startApi } from '../support/api-world.ts'

// The requests are those of MCP 2026-07-28, Streamable HTTP. No SDK of this revision is installed.

interface Message {
  readonly id: number
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'ExampleClient', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** A server without sessions, which compares the fields with the content ("Server Validation"). */
async function startMcpServer(t: TestContext, streams: EventEmitter): Promise<URL> {
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    if (req.method !== 'POST') return void res.writeHead(405).end()
    const { id, method, params } = (await json(req)) as Message
    const respond = (status: number, content: object) =>
      res
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...content }))
    const { 'mcp-method': methodField, 'mcp-name': nameField = '' } = req.headers
    const name = /^=\?base64\?(.*)\?=$/.exec(String(nameField))?.[1]
    const decoded = name === undefined ? nameField : Buffer.from(name, 'base64').toString()
    if (methodField !== method || decoded !== (params['name'] ?? ''))
      return void respond(400, { error: { code: -32020, message: 'Header mismatch' } })
    if (method === 'tools/call')
      return void respond(200, { result: { resultType: 'complete', person: req.headers['x-sub'], tool: decoded } })
    res.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }).flushHeaders()
    streams.emit('open', (event: object) => res.write(`data: ${JSON.stringify(event)}\n\n`))
    res.once('close', () => streams.emit('closed'))
  }
  const server = createServer((req, res) => void serve(req, res))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}

async function startGateway(t: TestContext, streams = new EventEmitter()): Promise<ApiWorld> {
  return startApi(t, {
    ...{ application: await startMcpServer(t, streams), upstream: 'path: /mcp' },
    accessTokens: `{ audience: [${audience}], metadata: true }`,
    rules: `[{ path: /mcp, mcp: { call: ['delete_*'] }, access_tokens: { scopes: [admin] } }, { path: /mcp, access_tokens: true }]`,
  })
}

function post(
  world: ApiWorld,
  method: string,
  params: Readonly<Record<string, unknown>>,
  fields: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${world.url}/mcp`, {
    method: 'POST',
    headers: {
      ...{ authorization: `Bearer ${world.token({ scope: 'read' })}`, 'content-type': 'application/json' },
      ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
      ...(typeof params['name'] === 'string' && { 'mcp-name': params['name'] }),
      ...fields,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  })
}

test('An agent of revision 2026-07-28 calls a tool without a session', async (t) => {
  const world = await startGateway(t)

  const response = await post(world, 'tools/call', { name: 'get_weather', arguments: { location: 'Seattle, WA' } })

  const { result } = (await response.json()) as { result: object }
  assert.deepEqual(result, { resultType: 'complete', person: 'jane', tool: 'get_weather' })
  assert.equal(response.headers.get('mcp-session-id'), null)
})

test('The name of a tool in Base64 reaches the server as the client wrote it, and a rule knows it', async (t) => {
  const world = await startGateway(t)
  const encoded = (name: string) => ({ 'mcp-name': `=?base64?${Buffer.from(name).toString('base64')}?=` })

  const found = await post(world, 'tools/call', { name: '天気' }, encoded('天気'))
  const denied = await post(world, 'tools/call', { name: 'delete_天気' }, encoded('delete_天気'))

  assert.deepEqual(((await found.json()) as { result: object }).result, {
    ...{ resultType: 'complete', person: 'jane', tool: '天気' },
  })
  assert.equal(denied.status, 403)
  assert.match(denied.headers.get('www-authenticate') ?? '', /insufficient_scope", scope="admin"/)
})

test('A server rejects a request that calls another tool than its fields say, and the agent gets the reason', async (t) => {
  const world = await startGateway(t)

  const response = await post(world, 'tools/call', { name: 'delete_user' }, { 'mcp-name': 'get_user' })

  assert.equal(response.status, 400)
  assert.deepEqual(await response.json(), {
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32020, message: 'Header mismatch' },
  })
})

test('Each notification of a subscription arrives at once, and closing the stream reaches the server', async (t) => {
  const streams = new EventEmitter()
  const world = await startGateway(t, streams)
  const opened = once(streams, 'open') as Promise<[(event: object) => void]>
  const closed = once(streams, 'closed')

  const response = await post(world, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
  const [send] = await opened
  const reader = (response.body ?? assert.fail()).getReader()
  const events: string[] = []
  for (const method of ['notifications/subscriptions/acknowledged', 'notifications/tools/list_changed']) {
    send({ jsonrpc: '2.0', method })
    events.push(Buffer.from((await reader.read()).value ?? []).toString())
  }
  await reader.cancel()

  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
  assert.deepEqual(events, [
    'data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}\n\n',
    'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n',
  ])
  await closed
})

test('An agent of an older revision is told so where rules are about tools', async (t) => {
  const world = await startGateway(t)
  const older = { 'mcp-protocol-version': '2025-06-18' }

  const response = await post(world, 'initialize', { capabilities: {} }, older)

  assert.equal(response.status, 400)
  assert.match(await response.text(), /do not say what it does/)
})
