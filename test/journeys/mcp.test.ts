import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { type OAuthClientProvider, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import type { Configuration } from 'oidc-provider'
import { withFeatures } from '../support/client-keys.ts'
import { freePort } from '../support/free-port.ts'
import { startWorld, type World } from '../support/world.ts'

const redirectUri = 'http://127.0.0.1:1/callback'

interface OrdersServer {
  readonly url: URL
  /** Emits `open` and `closed` for each event stream of a client. */
  readonly streams: EventEmitter
}

/** An MCP server without OAuth. Its tool returns the person that the gateway names. */
async function startMcpServer(t: TestContext): Promise<OrdersServer> {
  const streams = new EventEmitter()
  const transports = new Map<string, StreamableHTTPServerTransport>()
  const open = async (): Promise<StreamableHTTPServerTransport> => {
    const server = new McpServer({ name: 'orders', version: '1.0.0' })
    server.registerTool('whoami', {}, ({ requestInfo }) => ({
      content: [{ type: 'text', text: String(requestInfo?.headers['x-remote-user']) }],
    }))
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void transports.set(id, transport),
    })
    await server.connect(transport as Parameters<typeof server.connect>[0])
    return transport
  }
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    if (req.method === 'GET') {
      streams.emit('open')
      res.once('close', () => streams.emit('closed'))
    }
    const known = transports.get(String(req.headers['mcp-session-id']))
    await (known ?? (await open())).handleRequest(req, res)
  }
  const server = createServer((req, res) => void serve(req, res))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), streams }
}

/**
 * Agents register themselves, and get JWTs for the resource that they name (RFC 7591, RFC 8707).
 */
function forAgents(base: Configuration): Configuration {
  const features = {
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx: unknown, resource: string) => ({
        ...{ scope: 'tools:read tools:write', audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 600 },
      }),
    },
  } as unknown as NonNullable<Configuration['features']>
  const loadExistingGrant: Configuration['loadExistingGrant'] = async (ctx) => {
    const grant = await base.loadExistingGrant?.(ctx)
    for (const resource of [ctx.oidc.params?.['resource'] ?? []].flat())
      grant?.addResourceScope(String(resource), [...ctx.oidc.requestParamScopes].join(' '))
    await grant?.save()
    return grant
  }
  const scopes = ['openid', 'offline_access', 'tools:read', 'tools:write']
  return { ...withFeatures(features)(base), scopes, loadExistingGrant }
}

/** An agent of a person, who signs in at the provider when the agent asks. */
class Agent implements OAuthClientProvider {
  readonly redirectUrl = redirectUri
  readonly clientMetadata = {
    client_name: 'agent',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code'],
    token_endpoint_auth_method: 'none',
  }
  authorizationUrl: URL | undefined
  #client: Awaited<ReturnType<OAuthClientProvider['clientInformation']>>
  #tokens: OAuthTokens | undefined
  #verifier = ''

  clientInformation() {
    return this.#client
  }
  saveClientInformation(client: NonNullable<Awaited<ReturnType<OAuthClientProvider['clientInformation']>>>) {
    this.#client = client
  }
  tokens() {
    return this.#tokens
  }
  saveTokens(tokens: OAuthTokens) {
    this.#tokens = tokens
  }
  redirectToAuthorization(url: URL) {
    this.authorizationUrl = url
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier
  }
  codeVerifier() {
    return this.#verifier
  }
}

interface McpWorld extends World {
  readonly streams: EventEmitter
  /** Ends the sessions of a person, as a script does it. */
  end(person: Readonly<Record<string, string>>): Promise<unknown>
}

async function startGateway(t: TestContext): Promise<McpWorld> {
  const { url: upstream, streams } = await startMcpServer(t)
  const adminPort = await freePort()
  const world = await startWorld(t, {
    upstream,
    headers: '{ X-Remote-User: sub }',
    settings: `admin: { listen: "127.0.0.1:${adminPort}", page: {} }`,
    upstreamSettings: (url) => `path: /mcp
    access_tokens: { audience: ["${url}/mcp"], metadata: true }
    rules:
      - { path: /mcp, access_tokens: { scopes: ['tools:read'] } }
      - { path: /mcp/admin, access_tokens: { scopes: ['tools:write'] } }`,
    provider: { adjust: forAgents },
  })
  const end: McpWorld['end'] = async (person) => {
    const response = await fetch(`http://127.0.0.1:${adminPort}/sessions/end`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(person),
    })
    return response.json()
  }
  return { ...world, streams, end }
}

async function connect(world: World, agent: Agent): Promise<Client> {
  const url = new URL(`${world.url}/mcp`)
  const client = () => new Client({ name: 'agent', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(url, { authProvider: agent })
  await assert.rejects(client().connect(transport as Parameters<Client['connect']>[0]), UnauthorizedError)
  const callback = await world.browser('jane').until(String(agent.authorizationUrl), '/callback')
  await transport.finishAuth(new URL(callback).searchParams.get('code') ?? '')
  const connected = client()
  await connected.connect(
    new StreamableHTTPClientTransport(url, { authProvider: agent }) as Parameters<Client['connect']>[0],
  )
  return connected
}

test('An agent finds the provider, signs its person in, and calls a tool of an MCP server', async (t) => {
  const world = await startGateway(t)
  const agent = new Agent()
  const client = await connect(world, agent)
  t.after(() => client.close())

  const { tools } = await client.listTools()
  const { content } = await client.callTool({ name: 'whoami' })

  assert.deepEqual(
    tools.map(({ name }) => name),
    ['whoami'],
  )
  assert.deepEqual(content, [{ type: 'text', text: 'jane' }])
  assert.equal(agent.tokens()?.scope, 'tools:read', 'the scope of the rule, and no other')
})

test('When the person is signed out everywhere, the event stream of the agent is cut, and its token is refused', async (t) => {
  const world = await startGateway(t)
  const open = once(world.streams, 'open')
  const agent = new Agent()
  const client = await connect(world, agent)
  t.after(() => client.close())
  await open
  const closed = once(world.streams, 'closed')
  agent.authorizationUrl = undefined

  await world.end({ sub: 'jane' })

  await closed
  await assert.rejects(client.callTool({ name: 'whoami' }), UnauthorizedError)
  assert.notEqual(agent.authorizationUrl, undefined, 'the agent asks its person to sign in again')
})

test('Challenges name the metadata and the scopes, as the authorization of MCP needs them', async (t) => {
  const world = await startGateway(t)
  const agent = new Agent()
  await (await connect(world, agent)).close()
  const challenge = async (path: string, token: string) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' }
    const response = await fetch(world.url + path, { method: 'POST', headers, body: '{}' })
    return [response.status, response.headers.get('www-authenticate')]
  }
  const metadata = `resource_metadata="${world.url}/.well-known/oauth-protected-resource/mcp"`

  assert.deepEqual(await challenge('/mcp', 'garbage'), [
    401,
    `Bearer error="invalid_token", scope="tools:read", ${metadata}`,
  ])
  assert.deepEqual(await challenge('/mcp/admin', agent.tokens()?.access_token ?? ''), [
    403,
    `Bearer error="insufficient_scope", scope="tools:write", ${metadata}`,
  ])
})

test('A person with a session uses the same MCP server in the browser, without a token', async (t) => {
  const world = await startGateway(t)
  const jane = world.browser()
  await jane.get(`${world.url}/mcp`)
  const initialize = {
    ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'page', version: '1' } },
  }

  const response = await jane.fetch(`${world.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify(initialize),
  })

  assert.equal(response.status, 200)
  assert.match(response.body, /"serverInfo":\{"name":"orders"/)
})

test('The metadata that a challenge names are about the URL of the request (RFC 9728 §3.3)', async (t) => {
  const world = await startGateway(t)
  const url = `${world.url}/mcp`
  const challenge = (await fetch(url, { method: 'POST', body: '{}' })).headers.get('www-authenticate')
  const [, address = ''] = /resource_metadata="([^"]+)"/.exec(challenge ?? '') ?? []

  const metadata = (await (await fetch(address)).json()) as Readonly<Record<string, unknown>>

  assert.equal(metadata['resource'], url)
  // Agents request these scopes. The one of the administrators is not among them.
  assert.deepEqual(metadata['scopes_supported'], ['tools:read'])
})
