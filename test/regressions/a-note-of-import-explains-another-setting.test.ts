import assert from 'node:assert/strict'
import { test } from 'node:test'
import { translatePomerium } from '../../src/setup/pomerium.ts'

for (const [name, becomes] of [
  ['timeout', /a response must begin within 60s/],
  ['idle_timeout', /a body may pause for 5m/],
] as const)
  test(`Where ${name} of a route of Pomerium is not translated, the note says which limit holds`, () => {
    const text = `
authenticate_service_url: https://authenticate.example.com
routes:
  - { from: "https://a.example.com", to: "http://127.0.0.1:3000", ${name}: 0s }
`
    const { notes } = translatePomerium([{ name: 'config.yaml', text }], undefined)

    const [note = assert.fail(), ...more] = notes.filter((each) =>
      JSON.stringify(each).includes('0s is not translated'),
    )
    assert.equal(more.length, 0)
    assert.match(JSON.stringify(note), becomes)
  })
