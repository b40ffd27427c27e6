import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFlatToml } from '../../src/setup/flat-toml.ts'
import { translate } from '../../src/setup/oauth2-proxy.ts'

test('The file of import names the domains that oauth2-proxy admits beside a file of addresses', () => {
  const { yaml } = translate(
    readFlatToml('email_domains = ["example.com"]\nauthenticated_emails_file = "emails.txt"'),
    undefined,
  )

  assert.match(
    yaml,
    /emails\.txt and those of the domains example\.com; write \{ any: \[\{ email_domains: \[example\.com\] \}, \{ claim: email, /,
  )
})

for (const [what, text, advice] of [
  ['flags', '--provider=oidc\n--oidc-issuer-url=hunter2\n', /write each flag as NAME = VALUE/],
  ['arguments of a container', '# args\n- --client-secret=hunter2\n', /write each flag as NAME = VALUE/],
  ['values of the Helm chart', 'config:\n  clientSecret: hunter2\n', /the text of config\.configFile.*extraArgs/],
] as const)
  test(`Import says how to translate ${what}, and does not quote them`, () => {
    assert.throws(
      () => readFlatToml(text),
      ({ message }: Error) => advice.test(message) && !message.includes('hunter2'),
    )
  })
