import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Browser } from '../support/browser.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'

test('A configuration of oauth2-proxy becomes a working configuration of the gateway, and the output shows no secret of it', async (t) => {
  const { url, provider, upstream, ...prepared } = await prepareGateway(t, { reservedPrefix: '/oauth2/' })
  const env: Readonly<Record<string, string | undefined>> = {
    ...prepared.env,
    BASIC_AUTH_PASSWORD: 'a password of the application',
  }
  const cwd = folderWith(t, {
    'oauth2-proxy.cfg': `## OAuth2 Proxy Config File
http_address = "${new URL(url).host}"
redirect_url = "${url}/oauth2/callback"
upstreams = [
    "${upstream.url}/"
]
provider = "oidc"
oidc_issuer_url = "${provider.issuer}"
client_id = "orders"
client_secret = "${env['CLIENT_SECRET']}"
cookie_secret = "never-to-be-printed-1"
basic_auth_password = "never-to-be-printed-2"
redis_password = "never-to-be-printed-3"
signature_key = "sha1:never-to-be-printed-4"
unheard_of_secret = "never-to-be-printed-5"
email_domains = [ "*" ]
`,
  })

  const translation = startCommand(t, ['import', 'oauth2-proxy', 'oauth2-proxy.cfg', '-o', 'gateway.yaml'], { cwd })
  assert.equal(await translation.ended, 0, translation.err())
  const check = startCommand(t, ['check'], {
    cwd,
    env: { ...env, BASIC_AUTH_PASSWORD: 'a password of the application' },
  })
  assert.equal(await check.ended, 0, check.err())

  const file = join(cwd, 'gateway.yaml')
  const yaml = readFileSync(file, 'utf8')
  const said = translation.err() + translation.out() + yaml
  assert.doesNotMatch(said, /never-to-be-printed/)
  assert.ok(!said.includes(env['CLIENT_SECRET'] ?? ''))
  assert.match(
    translation.err(),
    /Not translated\n[^]*signature_key: [^]*unheard_of_secret|unheard_of_secret[^]*Not translated\n/,
  )

  // The operator decides about an option that the import does not know.
  writeFileSync(file, yaml.replace(/^ *- not:\n +networks:\n(?: +- .*\/0.*\n){2}/m, ''))
  const run = startCommand(t, ['run'], { cwd, env })
  await run.said('gatehouse is ready')
  const page = await new Browser('jane').get(url)
  assert.equal(page.status, 200)
  assert.match(page.body, /^for /)
})

test('The import names unreadable input without quoting it, and neither writes nor overwrites a file', async (t) => {
  const cwd = folderWith(t, {
    'broken.cfg': 'client_id = "a"\nclient_secret = "never-to-be-printed\n',
    'alpha.yaml': 'upstreamConfig:\n  upstreams: []\n',
    'good.cfg': 'client_id = "a"\n',
    'there.yaml': 'mine',
  })
  const call = async (...args: string[]) => {
    const command = startCommand(t, ['import', ...args], { cwd })
    return { code: await command.ended, err: command.err(), out: command.out() }
  }

  const broken = await call('oauth2-proxy', 'broken.cfg', '-o', 'new.yaml')
  assert.equal(broken.code, 1)
  assert.match(broken.err, /^gatehouse: broken\.cfg: line 2 is invalid/)
  assert.doesNotMatch(broken.err, /never-to-be-printed/)
  assert.throws(() => readFileSync(join(cwd, 'new.yaml')), /ENOENT/)

  assert.match(
    (await call('oauth2-proxy', 'alpha.yaml')).err,
    /alpha configuration \(YAML\), which import does not support/,
  )
  assert.match((await call('oauth2-proxy', 'nowhere.cfg')).err, /nowhere\.cfg does not exist/)
  assert.match((await call('oauth2-proxy', 'good.cfg', '-o', 'there.yaml')).err, /exists already; --force/)
  assert.equal(readFileSync(join(cwd, 'there.yaml'), 'utf8'), 'mine')

  for (const args of [
    [],
    ['authelia', 'x'],
    ['oauth2-proxy'],
    ['oauth2-proxy', '--service', 'a'],
    ['oauth2-proxy', 'a', '--url', 'x'],
  ])
    assert.equal((await call(...args)).code, 2, args.join(' '))
})
