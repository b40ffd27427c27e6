import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Dialect, readOptions } from '../../src/setup/option-sources.ts'
import { traefikDialect, translateTraefik } from '../../src/setup/traefik-forward-auth.ts'
import { translateVouch, vouchDialect } from '../../src/setup/vouch.ts'

const traefik = `default-provider = oidc
providers.oidc.issuer-url = https://id.example.com
providers.oidc.client-id = apps
auth-host = auth.example.com
`
const vouch = `vouch:
  allowAllUsers: true
oauth:
  provider: google
  client_id: x
  callback_url: https://vouch.example.com/auth
`

const optionsIn = (text: string, dialect: Dialect) => readOptions([{ name: 'given', text }], [], undefined, dialect)
const traefikFile = (text: string) => translateTraefik(optionsIn(traefik + text, traefikDialect), undefined)
const vouchFile = (text: string) => translateVouch(optionsIn(text, vouchDialect), undefined)

const denied = /# Denies all people until this is decided:/

for (const [what, text] of Object.entries({
  'an unknown option': 'unheard-of = 1',
  'an unknown provider': 'default-provider = generic-oauth',
  'a variable': 'whitelist = ${WHITELIST}',
  'a rule that restricts, with an unknown matcher': 'rule.a.rule = HostRegexp(`x`)\nrule.a.whitelist = a@example.com',
  'a rule with another provider': 'rule.a.rule = Path(`/a`)\nrule.a.provider = google',
  'an unknown parameter of a rule': 'rule.a.unheard = 1',
  'a prefix within a name, where all else is public': 'default-action = allow\nrule.a.rule = PathPrefix(`/admin`)',
}))
  test(`traefik-forward-auth: until an operator decides, the file denies all people: ${what}`, () => {
    assert.match(traefikFile(text).yaml, denied)
  })

for (const [what, text] of Object.entries({
  'an unknown option': vouch.replace('vouch:', 'vouch:\n  unheardOf: 1'),
  teams: vouch.replace('allowAllUsers: true', 'teamWhitelist: [a/b]'),
  'a provider without OpenID Connect': vouch.replace('google', 'github'),
  'a variable': vouch.replace('allowAllUsers: true', 'domains: ["${DOMAIN}"]'),
}))
  test(`Vouch Proxy: until an operator decides, the file denies all people: ${what}`, () => {
    assert.match(vouchFile(text).yaml, denied)
  })

test('Without these, no person is denied', () => {
  assert.doesNotMatch(traefikFile('').yaml, denied)
  assert.doesNotMatch(vouchFile(vouch).yaml, denied)
})

test('Invalid input is named by its line, and not quoted', () => {
  for (const read of [() => traefikFile('=never-to-be-printed'), () => vouchFile('vouch: "never-to-be-printed')])
    assert.throws(
      read,
      (error: Error) =>
        error instanceof SyntaxError && /^given: line \d/.test(error.message) && !/never/.test(error.message),
    )
})
