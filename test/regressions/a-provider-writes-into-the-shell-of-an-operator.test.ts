import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test, type TestContext } from 'node:test'
import { startApi } from '../support/claims-apis.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'
import { sendJson } from '../support/signing-provider.ts'

/** Registers at a provider that responds with this client. */
async function register(t: TestContext, client: Readonly<Record<string, unknown>>) {
  const { origin } = await startApi(t, (req, res) => {
    if (req.method === 'POST') sendJson(res, client, 201)
    else sendJson(res, { issuer: origin, registration_endpoint: `${origin}/register` })
  })
  const yaml = `version: 1
external_url: http://127.0.0.1:8080
provider: { issuer: "${origin}", client_id: unregistered, client_secret: { env: ORDERS_SECRET } }
upstreams: { orders: { url: "http://127.0.0.1:3000" } }
`
  const command = startCommand(t, ['register'], { cwd: folderWith(t, { 'gateway.yaml': yaml }) })
  return { code: await command.ended, out: command.out(), err: command.err() }
}

test('The command with a secret sets the variable to the secret, and does nothing else', async (t) => {
  const client_secret = `it's a; secret' $(echo not run) '; echo run; '`

  const { code, out, err } = await register(t, { client_id: 'orders', client_secret })

  assert.equal(code, 0, err)
  const [, command = ''] = /shown only now: (export .*)/.exec(out) ?? []
  assert.equal(
    execFileSync('sh', ['-c', `${command}; printf %s "$ORDERS_SECRET"`], { encoding: 'utf8' }),
    client_secret,
  )
})

for (const [name, client] of Object.entries({
  client_id: { client_id: 'orders\u001b[2J', client_secret: 'x' },
  client_secret: { client_id: 'orders', client_secret: 'x\u001b[2J' },
  redirect_uris: { client_id: 'orders', client_secret: 'x', redirect_uris: ['https://a/\u001b[2J\u009b2J'] },
}))
  test(`The terminal gets no escape sequence of the provider: ${name}`, async (t) => {
    const { code, out, err } = await register(t, client)

    assert.equal(code, name === 'redirect_uris' ? 0 : 1, err)
    assert.doesNotMatch(out + err, /[\u001b\u009b]/)
  })
