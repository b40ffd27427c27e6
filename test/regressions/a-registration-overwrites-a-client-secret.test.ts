import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startApi } from '../support/claims-apis.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'
import { sendJson } from '../support/signing-provider.ts'

for (const options of [[], ['--state', 'other.json']])
  test(`A registration keeps the secret of another client: ${['register', ...options].join(' ')}`, async (t) => {
    let registrations = 0
    const { origin } = await startApi(t, (req, res) => {
      if (req.method !== 'POST') return sendJson(res, { issuer: origin, registration_endpoint: `${origin}/register` })
      registrations += 1
      return sendJson(res, { client_id: 'orders', client_secret: 'new' }, 201)
    })
    const yaml = `version: 1
external_url: http://127.0.0.1:8080
provider: { issuer: "${origin}", client_id: unregistered, client_secret: { file: client_secret } }
upstreams: { orders: { url: "http://127.0.0.1:3000" } }
`
    const cwd = folderWith(t, { 'gateway.yaml': yaml })
    const secret = join(cwd, 'client_secret')
    writeFileSync(secret, 'of the client that people use\n')

    const command = startCommand(t, ['register', ...options], { cwd })

    assert.equal(await command.ended, 1)
    assert.match(
      command.err(),
      /client_secret exists: use --update .*, or name another file in provider\.client_secret/,
    )
    assert.equal(readFileSync(secret, 'utf8'), 'of the client that people use\n')
    assert.equal(registrations, 0)
    assert.equal(existsSync(join(cwd, 'other.json')), false)
  })
