import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { check, type CheckFormat } from '../../src/cli/check.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'
import { rejectedReload } from '../support/rejected-reload.ts'

/** Where people write a secret into the file. */
const mistakes: Readonly<Record<string, string>> = {
  'a text': 'hunter2',
  'a quoted text': '"hunter2"',
  'a list': '[hunter2]',
  'a list of two': '[hunter2, hunter2]',
  'a list of maps': '[{ value: hunter2 }]',
  'a list of names': '[{ env: hunter2- }]',
  'a map': '{ value: hunter2 }',
  'a variable': '{ env: hunter2- }',
  'several words': 'hunter2 hunter2',
  'an address': 'https://hunter2@hunter2',
  'a text that begins with "!"': '!hunter2',
  'a number': '{ env: 1, value: 0x1hunter2 }',
}

const configuration = (secret: string) => `version: 1
admin: { listen: 127.0.0.1:0, page: { token: ${secret} } }
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: ${secret}, client_key: ${secret} }
session:
  keys: ${secret}
  store: { redis: { url: rediss://redis, password: ${secret} } }
tracing: { otlp: https://collector, headers: { Authorization: ${secret} } }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    headers: { Authorization: { basic: { user: sub, password: ${secret} } } }
`

for (const [kind, secret] of Object.entries(mistakes))
  test(`No diagnostic repeats a secret that is written into the file as ${kind}`, async (t) => {
    const file = join(folderWith(t, { 'gateway.yaml': configuration(secret) }), 'gateway.yaml')

    for (const format of ['text', 'json', 'github'] satisfies CheckFormat[]) {
      const { terminal, said } = recordingTerminal()
      assert.equal(await check({ ...terminal, file }, format), 1)
      assert.doesNotMatch(said.out + said.err, /hunter2/)
    }
    assert.doesNotMatch(JSON.stringify(await rejectedReload(t, { file, env: {} })), /hunter2/)
  })
