import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { translatePomerium } from '../../src/setup/pomerium.ts'

for (const [cookie_expire, absolute_timeout, idle_timeout] of [
  ['20m', '20m', '20m'],
  ['1h30m', '90m', '30m'],
] as const) {
  test(`Sessions of Pomerium that end after ${cookie_expire} do so in the imported file`, () => {
    const text = `cookie_expire: ${cookie_expire}\nroutes: [{ from: https://orders.example.com, to: http://orders }]\n`

    const { yaml } = translatePomerium([{ name: 'config.yaml', text }], undefined)

    const { session } = parse(yaml) as { session: Record<string, unknown> }
    assert.deepEqual([session['absolute_timeout'], session['idle_timeout']], [absolute_timeout, idle_timeout])
  })
}
