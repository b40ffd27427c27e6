import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { check, type CheckFormat } from '../../src/cli/check.ts'
import { loadServableOrReport } from '../../src/cli/load.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'
import { rejectedReload } from '../support/rejected-reload.ts'
import { isLongSearch } from '../support/searches.ts'

/** Somebody names one of these by mistake. Each contains "hunter2" wherever a secret may be. */
const secretFiles: Readonly<Record<string, string>> = {
  'a password': 'hunter2\n',
  'a password with a colon': 'hunter2: hunter2\n',
  'a name and a password': 'password: hunter2\n',
  'a short password of an administrator': 'admin: hunter2\nsession: hunter2\nprovider: hunter2\n',
  'passwords of people': 'root:$6$hunter2$hunter2:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n',
  'passwords of a web server': 'admin:$apr1$hunter2\nprovider:$apr1$hunter2\n',
  variables: 'export CLIENT_SECRET="hunter2"\nTOKEN=hunter2\n',
  'variables with a quote': "TOKEN: 'hunter2\nKEY: hunter2\n",
  'a list': '- hunter2\n- url: https://hunter2\n',
  'a list on one line': '[hunter2, hunter2\n',
  JSON: '{ "web": { "client_id": "hunter2", "client_secret": "hunter2" } }\n',
  'invalid JSON': '{ "hunter2": "hunter2" "hunter2" }\n',
  'a private key': '-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n',
  'a manifest': 'apiVersion: v1\nkind: Secret\ndata:\n  hunter2: hunter2\n',
  'a database': 'production:\n  url: postgres://hunter2:hunter2@db/hunter2\n  pool: hunter2\n',
  'a tab': 'a:\n\thunter2: hunter2\n',
  'a tag': '!hunter2 hunter2\n',
  'an alias': '*hunter2\n',
  brackets: 'a: {hunter2[0]: hunter2}\n',
  'a number': '{ hunter2: 1, 1: hunter2, ? [hunter2] : 2 }\n',
  'another version of YAML': '%YAML 1.1\n---\nhunter2: hunter2\n',
  'an unknown directive': '%hunter2 hunter2\n---\nhunter2\n',
  'two documents': 'hunter2\n---\nhunter2\n',
  'duplicate names': 'hunter2: 1\nhunter2: 2\n',
  'a NUL character': 'hunter2: \0hunter2\n',
  'other bytes': 'hunter2: \ufffd\ud83d\n',
}

const settings = (more: string) => `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
${more}
`
const upstreams = 'upstreams: { orders: { url: http://127.0.0.1:3000 } }'
const env = { CLIENT_SECRET: 'correct horse battery staple' }

/** Every setting that names a file, with the secret file. */
const asNamedFile = `version: 1
listen: { address: 127.0.0.1:0, tls: { cert_file: secret, key_file: secret } }
admin: { listen: 127.0.0.1:0, page: { token: { file: secret } } }
external_url: https://orders.example.com
provider:
  issuer: https://id.example.com
  client_id: orders
  client_key: { file: secret }
  ca_file: secret
session: { keys: [{ file: secret }], store: { redis: { url: rediss://redis, ca_file: secret, password: { file: secret } } } }
pages: { logo: secret, templates: . }
tracing: { otlp: https://collector, ca_file: secret, headers: { A: { file: secret } } }
upstreams:
  orders:
    url: https://127.0.0.1:3000
    ca_file: secret
    service_accounts: { file: secret }
    headers: { Authorization: { basic: { user: sub, password: { file: secret } } } }
`

function configurationsWith(t: TestContext, secret: string) {
  const folder = folderWith(t, {
    secret,
    'included.yaml': settings(`include: [secret]`),
    'included-beside.yaml': settings(`include: [s*]\n${upstreams}`),
    'named.yaml': asNamedFile,
  })
  const names = ['secret', 'included.yaml', 'included-beside.yaml', 'named.yaml']
  return names.map((name) => join(folder, name))
}

const formats: readonly CheckFormat[] = ['text', 'json', 'github']

for (const [at, [kind, secret]] of Object.entries(secretFiles).entries()) {
  // The short search tries one format with each file, in turn.
  for (const format of formats.filter((_, nth) => isLongSearch || nth === at % formats.length))
    test(`check --format ${format} shows nothing of a file of secrets: ${kind}`, async (t) => {
      for (const file of configurationsWith(t, secret)) {
        const { terminal, said } = recordingTerminal(env)

        assert.equal(await check({ ...terminal, file }, format), 1)

        assert.doesNotMatch(said.out + said.err, /hunter2/)
        assert.match(said.out + said.err, /secret/, 'the file is named')
      }
    })

  test(`Neither a start nor a reload shows anything of a file of secrets: ${kind}`, async (t) => {
    const files = configurationsWith(t, secret)
    for (const file of files) {
      const { terminal, said } = recordingTerminal(env)

      assert.equal(loadServableOrReport({ ...terminal, file }), undefined)

      assert.doesNotMatch(said.out + said.err, /hunter2/)
      assert.doesNotMatch(JSON.stringify(await rejectedReload(t, { file, env })), /hunter2/)
    }
  })
}

test('A configuration with an invalid first line still shows its line', async (t) => {
  const file = join(
    folderWith(t, { 'gateway.yaml': settings(upstreams).replace('version: 1', 'version 1') }),
    'gateway.yaml',
  )
  const { terminal, said } = recordingTerminal(env)

  await check({ ...terminal, file })

  assert.match(said.err, /1 \| version 1\n/)
})
