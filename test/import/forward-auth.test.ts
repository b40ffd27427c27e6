import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { parse } from 'yaml'
import { type Dialect, readOptions } from '../../packages/import/common/option-sources.ts'
import { traefikDialect, translateTraefik } from '../../packages/import/forward-auth/traefik-forward-auth.ts'
import { translateVouch, vouchDialect } from '../../packages/import/forward-auth/vouch.ts'

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
  'a prefix within a name, for a few people': 'rule.a.rule = PathPrefix(`/user1`)\nrule.a.whitelist = jane@example.com',
  'a prefix within a name, below a public one':
    'rule.a.rule = PathPrefix(`/a/user1`)\nrule.b.rule = PathPrefix(`/a`)\nrule.b.action = allow',
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

test('Options of generic OAuth have one reason, and no callback is no part of a sentence', () => {
  const { notes } = traefikFile(
    'default-provider = generic-oauth\nproviders.generic-oauth.auth-url = https://a\nproviders.generic-oauth.client-id = x\n',
  )
  assert.ok(!notes.some(({ text }) => text.includes('it is unknown')))
  const withoutCallback = vouchFile(vouch.replace(/ +callback_url.*\n/, ''))
  assert.ok(withoutCallback.notes.some(({ text }) => text.includes('.gatehouse/callback: register it')))
})

test('Without these, no person is denied', () => {
  assert.doesNotMatch(traefikFile('').yaml, denied)
  assert.doesNotMatch(traefikFile('rule.a.rule = PathPrefix(`/user1/`)\nrule.a.whitelist = a@example.com').yaml, denied)
  assert.doesNotMatch(traefikFile('whitelist = a@example.com\nrule.a.rule = PathPrefix(`/user1`)').yaml, denied)
  assert.doesNotMatch(vouchFile(vouch).yaml, denied)
})

for (const [provider, claims] of Object.entries({
  google: ['email'],
  oidc: ['username', 'email'],
  azure: ['username', 'upn', 'preferred_username', 'email'],
  adfs: ['upn'],
}))
  test(`Vouch Proxy: a person without a name has no access with allowAllUsers and ${provider}`, () => {
    const { yaml } = vouchFile(vouch.replace('google', provider))
    const { app } = (parse(yaml) as { upstreams: { app: { rules: readonly object[]; tests: readonly object[] } } })
      .upstreams
    const each = claims.map((claim) => ({ claim, matches: '.+' }))
    assert.deepEqual(app.rules, [{ path: '/*', require: each.length === 1 ? each : [{ any: each }] }])
    const as = { sub: 'ada', email_verified: true }
    assert.ok(app.tests.some((one) => isDeepStrictEqual(one, { as, get: '/', expect: 'forbidden' })))
  })

test('Vouch Proxy: with ADFS, a domain is no name', () => {
  const { yaml } = vouchFile(vouch.replace('google', 'adfs').replace('allowAllUsers: true', 'domains: [example.com]'))
  assert.match(yaml, /- claim: upn\n +matches: \.\+\n/)
})

test('Invalid input is named by its line, and not quoted', () => {
  for (const read of [() => traefikFile('=never-to-be-printed'), () => vouchFile('vouch: "never-to-be-printed')])
    assert.throws(
      read,
      (error: Error) =>
        error instanceof SyntaxError && /^given: line \d/.test(error.message) && !/never/.test(error.message),
    )
})
