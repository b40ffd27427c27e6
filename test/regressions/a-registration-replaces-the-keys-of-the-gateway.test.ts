import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { folderWith } from '../support/command-line.ts'
import { startSigningProvider } from '../support/signing-provider.ts'
import { type Replica, runReplica, secrets } from '../support/world.ts'

const yamlWith = (issuer: string, store: string) => `version: 1
listen: 127.0.0.1:0
external_url: http://127.0.0.1:8080
provider:
  issuer: ${issuer}
  client_id: unregistered
  client_secret: { env: CLIENT_SECRET }
  id_token_encrypted_response_alg: RSA-OAEP-256
session: { keys: [{ env: SESSION_KEY }], store: ${store} }
upstreams:
  orders: { url: "http://127.0.0.1:1", signed_identity: true }
`

/** What `gatehouse register` and operators write into the configuration. */
const changes = {
  'a registration': (yaml: string) => yaml.replace('unregistered', '767e8e57-3851-4670-a2b2-eb26d23a2f53'),
  'another external_url': (yaml: string) => yaml.replace('http://127.0.0.1:8080', 'https://orders.example.com'),
}

/** The `kid` of the keys to which providers encrypt, and with which the gateway signs. */
async function publishedBy({ url }: Replica): Promise<readonly string[]> {
  const ids = ['client-jwks.json', 'jwks.json'].map(async (name) => {
    const response = await fetch(`${url}/.gatehouse/${name}`)
    const { keys } = (await response.json()) as { readonly keys: readonly { readonly kid: string }[] }
    return keys.map(({ kid }) => kid)
  })
  return (await Promise.all(ids)).flat()
}

const run = (t: TestContext, yaml: string) => runReplica(t, yaml, { now: () => Date.now() })

for (const [what, change] of Object.entries(changes)) {
  test(`After ${what} and a restart, the keys are those that others know`, async (t) => {
    const { config } = await startSigningProvider(t)
    const yaml = yamlWith(config.issuer, `{ file: "${join(folderWith(t, {}), 'sessions.db')}" }`)
    const before = await run(t, yaml)
    const known = await publishedBy(before)
    await before.stop()

    const after = await run(t, change(yaml))

    assert.equal(known.length, 2)
    assert.deepEqual(await publishedBy(after), known)
  })

  test(`After ${what} and a reload, the keys are those that others know`, async (t) => {
    const { config } = await startSigningProvider(t)
    const yaml = yamlWith(config.issuer, 'memory')
    const replica = await run(t, yaml)
    const known = await publishedBy(replica)

    writeFileSync(replica.file, change(yaml))
    const loaded = loadConfig(replica.file, secrets)
    assert.ok(loaded.ok)
    await replica.gateway.reload(loaded.config)

    assert.deepEqual(await publishedBy(replica), known)
  })
}
