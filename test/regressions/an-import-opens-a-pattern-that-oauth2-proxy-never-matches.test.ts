import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { readFlatToml } from '../../src/setup/flat-toml.ts'
import { translate } from '../../src/setup/oauth2-proxy.ts'

const publicPaths = (option: string) => {
  const toml = `upstreams = ["http://app:3000/"]\n${option} = ["GET=^/admin/report$", "=^/admin/", "^/open$"]\n`
  const { rules } = parse(translate(readFlatToml(toml), 'https://orders.example.com').yaml).upstreams.app
  return rules.flatMap(({ path, access }: { path: string; access?: string }) => (access === 'public' ? [path] : []))
}

test('A method before a pattern opens paths in skip_auth_routes only, as in oauth2-proxy', () => {
  assert.deepEqual(publicPaths('skip_auth_routes'), ['/admin/report', '/admin/', '/admin/*/*', '/open'])
  // Here the whole text is the regular expression. "^" behind other characters matches nothing.
  assert.deepEqual(publicPaths('skip_auth_regex'), ['/open'])
})
