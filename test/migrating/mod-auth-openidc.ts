import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test, type TestContext } from 'node:test'
import { installDebian } from '../applications/installed.ts'
import { dataFolder, startProgram } from '../applications/programs.ts'
import { blocksOf, pages } from '../docs/markdown.ts'
import { valuesOf } from '../proxies/site.ts'
import { Browser } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { imported } from '../support/imported.ts'
import { runReplica, secrets } from '../support/world.ts'
import { apacheSite } from './apache-sites.ts'
import { comparePairs, reasonToSkip, startPeer, type Peer } from './compare.ts'
import { compareGenerated } from './generated.ts'
import { pairsOf } from './pairs.ts'

const modules = '/usr/lib/apache2/modules'
const loaded = [
  'mpm_event',
  'setenvif',
  'alias',
  'authz_host',
  'authn_core',
  'authz_core',
  'authz_user',
  'headers',
  'proxy',
  'proxy_http',
  'auth_openidc',
]

const needed = { apache2: '/usr/sbin/apache2', 'libapache2-mod-auth-openidc': join(modules, 'mod_auth_openidc.so') }
const skip = reasonToSkip(() => installDebian(needed, ['libapache2-mod-auth-openidc', '2.4.12']))

const withSecrets = (theirs: string) =>
  theirs.replaceAll(/^(OIDCClientSecret|OIDCCryptoPassphrase) …$/gm, `$1 "${secrets.CLIENT_SECRET}"`)

const apache: Peer = {
  name: 'mod_auth_openidc',
  callback: '/protected/redirect_uri',
  forbidden: 401,
  skip,
  start: (t, theirs, url) => {
    const folder = dataFolder(t)
    // Its processes run as another user.
    chmodSync(folder, 0o755)
    const file = join(folder, 'httpd.conf')
    writeFileSync(
      file,
      [
        `ServerRoot ${folder}`,
        `ServerName ${url.hostname}`,
        `DefaultRuntimeDir ${folder}`,
        `PidFile ${join(folder, 'pid')}`,
        `ErrorLog ${join(folder, 'error.log')}`,
        `Listen ${url.host}`,
        ...loaded.map((name) => `LoadModule ${name}_module ${join(modules, `mod_${name}.so`)}`),
        ...(process.getuid?.() === 0 ? ['User www-data', 'Group www-data'] : []),
        withSecrets(theirs),
      ].join('\n'),
    )
    return startProgram(t, ['/usr/sbin/apache2', '-DFOREGROUND', '-f', file], new URL('/protected/none', url))
  },
  imported: async (t, theirs, url) => {
    const file = join(dataFolder(t), 'site.conf')
    writeFileSync(file, withSecrets(theirs))
    const { out } = await imported('mod_auth_openidc', file, '--url', url)
    return out.replace(/^listen: .*$/m, `listen: ${new URL(url).host}`).replaceAll('env: X_API_TOKEN', 'value: abc')
  },
}

const [typical, ...recipes] = pairsOf('mod_auth_openidc.md', 'apache')
assert.ok(typical, 'the page has a typical configuration')
/** A recipe has only what differs: the rest is that of the typical configuration. */
const settings = typical.theirs.replaceAll(/^<[^]*?^<\/.*\n/gm, '')
/** The block of the page that begins with a directive. */
const theirsOf = (directive: string) =>
  pages
    .filter(({ path }) => path === 'docs/migrating/mod_auth_openidc.md')
    .flatMap(blocksOf)
    .find(({ text }) => text.startsWith(directive))?.text ?? assert.fail(`there is no block with ${directive}`)
comparePairs(apache, [typical, ...recipes.map((recipe) => ({ ...recipe, theirs: settings + recipe.theirs }))])

compareGenerated(
  apache,
  new Map([
    ['jane', { sub: 'jane', groups: ['admins', 'staff'], email: 'jane@example.com', level: 2, active: true }],
    ['zoe', { sub: 'zoe', groups: ['staff'], email: 'zoe@example.com', level: '2', address: { city: 'Berlin' } }],
    ['bob', { sub: 'bob', groups: 'ops', active: 'true' }],
    ['ada', { sub: 'ada', email: 'ada@example.com', groups: ['not-admins', 'ops '], address: { city: ['Berlin'] } }],
  ]),
  (choices) => apacheSite(settings, choices),
)

const people = new Map([
  ['jane', { sub: 'jane', groups: ['admins'], email: 'jane@example.com' }],
  ['zoe', { sub: 'zoe', groups: ['staff'] }],
])

function start(t: TestContext, theirs: string, signInAt = '/') {
  return startPeer(t, apache, { theirs: theirs + settings, people, signInAt })
}

const everything = '<Location />\nAuthType openid-connect\nRequire valid-user\n</Location>\n'

/** What the page says about Apache alone: sections, and the outcomes of requests. */
const facts: readonly (readonly [fact: string, theirs: string, ...outcomes: string[]])[] = [
  [
    'A wide section after a narrow one opens it',
    `<Location /admin>\nAuthType openid-connect\nRequire claim groups:admins\n</Location>\n${everything}`,
    'zoe GET /admin/: pass',
  ],
  [
    'A path without a section is open',
    '<Location /protected>\nAuthType openid-connect\nRequire valid-user\n</Location>\n',
    'nobody GET /orders: pass',
  ],
  [
    'The case of a path counts, and a slash at the end of a section',
    `${everything}<Location /admin>\nRequire claim groups:admins\n</Location>
     <Location /files/>\nRequire claim groups:admins\n</Location>\n`,
    'zoe GET /admin/: forbidden',
    'zoe GET /ADMIN/: pass',
    'zoe GET /files/: forbidden',
    'zoe GET /files: pass',
  ],
  [
    '<Limit> opens the methods that it does not name, also without a sign-in',
    `${everything}<Location /a>\n<Limit POST PUT>\nRequire claim groups:admins\n</Limit>\n</Location>\n`,
    'zoe POST /a: forbidden',
    'nobody DELETE /a: pass',
    'nobody GET /a: pass',
  ],
  [
    'AuthMerging Or adds people',
    `<Location />\nAuthType openid-connect\nRequire claim groups:staff\n</Location>
     <Location /admin>\nAuthMerging Or\nRequire claim groups:admins\n</Location>\n`,
    'zoe GET /admin/: pass',
    'jane GET /admin/: pass',
    'jane GET /: forbidden',
  ],
  [
    'Require valid-user beside Require claim admits everybody who is signed in',
    `${everything}<Location /a>\nRequire valid-user\nRequire claim groups:admins\n</Location>\n`,
    'zoe GET /a: pass',
  ],
  [
    'Several values in one line are alternatives, and a person without a claim meets "not"',
    `${everything}<Location /a>\nRequire claim groups:admins sub:zoe\n</Location>
     <Location /b>\n<RequireAll>\nRequire valid-user\nRequire not claim email:jane@example.com\n</RequireAll>\n</Location>\n`,
    'zoe GET /a: pass',
    'zoe GET /b: pass',
    'jane GET /b: forbidden',
  ],
  [
    'Regular expressions match anywhere',
    `${everything}<Location /a>\nRequire claim groups~dmin\n</Location>
     <LocationMatch "/public">\nRequire all granted\n</LocationMatch>
     <Location ~ "\\.css$">\nRequire all granted\n</Location>\n`,
    'jane GET /a: pass',
    'zoe GET /a: forbidden',
    'nobody GET /a/public: pass',
    'nobody GET /a/x.css: pass',
  ],
  [
    '"pass" lifts Require claim for people who are not signed in only',
    `${everything}<Location /a>\nOIDCUnAuthAction pass\nRequire claim groups:admins\n</Location>\n`,
    'nobody GET /a: pass',
    'jane GET /a: pass',
    'zoe GET /a: forbidden',
  ],
  [
    '<If> overrides every other section',
    `<If "true">\nRequire all granted\n</If>\n${everything}<Location /in>\nRequire valid-user\n</Location>\n`,
    'nobody GET /: pass',
  ],
  [
    'A person without access gets 401, whatever OIDCUnAutzAction says, and 403 with AuthzSendForbiddenOnFailure',
    `${everything}<Location /a>\nRequire claim groups:admins\nOIDCUnAutzAction 403\n</Location>
     <Location /b>\nRequire claim groups:admins\nAuthzSendForbiddenOnFailure On\n</Location>\n`,
    'zoe GET /a: forbidden',
    'zoe GET /b: status 403',
  ],
  [
    '410 is a status, and "auth" redirects only pages by default',
    `${everything}<Location /gone>\nOIDCUnAuthAction 410\n</Location>
     <Location /auth>\nOIDCUnAuthAction auth\n</Location>
     <Location /always>\nOIDCUnAuthAction auth true\n</Location>\n`,
    'nobody GET /gone: status 410',
    'nobody GET / accept=application/json: unauthorized',
    'nobody GET / x-requested-with=XMLHttpRequest: unauthorized',
    'nobody GET /auth accept=application/json: unauthorized',
    'nobody GET /always accept=application/json: sign_in',
  ],
  [
    'Addresses, methods and names',
    `${everything}<Location /ip>\nRequire ip 10.0.0.0/8\nRequire valid-user\n</Location>
     <Location /and>\n<RequireAll>\nRequire ip 10.0.0.0/8\nRequire valid-user\n</RequireAll>\n</Location>
     <Location /get>\nRequire method GET\n</Location>
     <Location /user>\nRequire user jane\n</Location>\n`,
    'zoe GET /ip: pass',
    'nobody GET /ip: sign_in',
    'zoe GET /and: status 403',
    'nobody GET /get: pass',
    'zoe POST /get: status 403',
    'jane GET /user: pass',
    'zoe GET /user: forbidden',
  ],
  [
    'Satisfy Any with Allow from all admits everybody',
    `LoadModule access_compat_module ${join(modules, 'mod_access_compat.so')}
     ${everything}<Location /a>\nOrder deny,allow\nAllow from all\nSatisfy Any\n</Location>\n`,
    'nobody GET /a: pass',
  ],
  [
    'The redirect URI is the endpoint of all other functions, for everybody',
    `OIDCInfoHook iat userinfo\n${everything}`,
    'nobody GET /protected/redirect_uri?info=json: unauthorized',
    'zoe GET /protected/redirect_uri?info=json: status 200',
    'nobody GET /protected/redirect_uri?logout=backchannel: status 400',
    'zoe GET /protected/redirect_uri?refresh=/: sign_in',
    'zoe GET /protected/redirect_uri?logout=: sign_in',
  ],
]

for (const [fact, theirs, ...outcomes] of facts)
  test(`Apache: ${fact}`, { skip }, async (t) => {
    const { side } = await start(t, theirs, theirs.includes('<Location /in>') ? '/in' : '/protected/none')
    for (const outcome of outcomes) {
      const [, who = '', method = '', path = '', name, value = '', expected] =
        /^(\w+) (\w+) (\S+?)(?: ([\w-]+)=(\S+))?: (.*)$/.exec(outcome) ?? []
      const headers = name === undefined ? {} : { [name]: value }
      assert.equal(await side.ask(who === 'nobody' ? undefined : who, method, path, headers), expected, outcome)
    }
  })

test('Apache: Files are protected by the longest folder, and a <Location> overrides that', { skip }, async (t) => {
  const folder = dataFolder(t)
  chmodSync(folder, 0o755)
  for (const path of ['files', 'files/open', 'files/deep', 'covered', 'proxied']) {
    mkdirSync(join(folder, path))
    writeFileSync(join(folder, path, 'index.txt'), path)
  }
  writeFileSync(join(folder, 'files', 'page.md'), '')
  writeFileSync(join(folder, 'files', 'open', '.htaccess'), 'Require all granted\n')
  const section = (path: string, group: string) =>
    `<Directory ${join(folder, path)}>\nAllowOverride All\nAuthType openid-connect\nRequire claim groups:${group}\n</Directory>\n`
  const { side } = await start(
    t,
    `DocumentRoot ${folder}\nProxyPass /files !\nProxyPass /covered !
     <Files "*.md">\nRequire all granted\n</Files>
     ${section('files/deep', 'staff')}${section('files', 'admins')}${section('covered', 'admins')}${section('proxied', 'admins')}
     <Location /covered>\nAuthType openid-connect\nRequire valid-user\n</Location>
     <Location /protected>\nAuthType openid-connect\nRequire valid-user\n</Location>\n`,
    '/protected/none',
  )
  assert.equal(await side.ask('zoe', 'GET', '/files/index.txt'), 'forbidden')
  assert.equal(await side.ask(undefined, 'GET', '/files/page.md'), 'status 200')
  assert.equal(await side.ask('zoe', 'GET', '/files/deep/index.txt'), 'status 200')
  assert.equal(await side.ask(undefined, 'GET', '/files/open/index.txt'), 'status 200')
  assert.equal(await side.ask('zoe', 'GET', '/covered/index.txt'), 'status 200')
  assert.equal(await side.ask(undefined, 'GET', '/proxied/index.txt'), 'pass')
})

test('Apache: What the application receives', { skip }, async (t) => {
  const sections = `${everything}<Location /authn>\nOIDCAuthNHeader X-Remote-User\n</Location>
    <Location /static>\nAuthType None\nRequire all granted\n</Location>
    <Location /stripped>\nOIDCStripCookies mod_auth_openidc_session\n</Location>\n`
  const { side, application } = await start(t, sections)
  const received = async (person: string | undefined, path: string, name: string, headers = {}) => {
    assert.equal(await side.ask(person, 'GET', path, headers), 'pass')
    const [request] = application.received
    assert.ok(request)
    return valuesOf(request, name)
  }
  assert.deepEqual(await received('jane', '/', 'oidc-claim-email'), ['jane@example.com'])
  assert.equal((await received('jane', '/', 'oidc-access-token')).length, 1)
  assert.match((await received('jane', '/', 'cookie')).join(), /mod_auth_openidc_session/)
  assert.doesNotMatch((await received('jane', '/stripped', 'cookie')).join(), /mod_auth_openidc_session/)
  const forged = { OIDC_CLAIM_email: 'forged' }
  assert.deepEqual(await received('zoe', '/', 'oidc-claim-email', forged), [])
  assert.deepEqual(await received(undefined, '/static', 'oidc-claim-email', forged), ['forged'])
})

test('Apache: An empty OIDCClaimPrefix lets a client choose claims that it lacks', { skip }, async (t) => {
  const { side, application } = await start(t, `OIDCClaimPrefix ""\n${everything}`)
  assert.equal(await side.ask('zoe', 'GET', '/', { email: 'forged' }), 'pass')
  assert.deepEqual(
    application.received.flatMap((request) => valuesOf(request, 'email')),
    ['forged'],
  )
})

test(
  'Apache: OIDCRemoteUserClaim: its default, its expression, and a person without the claim',
  { skip },
  async (t) => {
    const header = `${everything}<Location /authn>\nOIDCAuthNHeader X-Remote-User\n</Location>\n`
    const userOf = async (directive: string) => {
      const theirs = header + settings.replace(/^OIDCRemoteUserClaim .*$/m, directive)
      const { side, application } = await startPeer(t, apache, { theirs, people, signInAt: '/' })
      const outcomes = [await side.ask('zoe', 'GET', '/authn'), await side.ask('jane', 'GET', '/authn')]
      const users = application.received.flatMap((request) => valuesOf(request, 'x-remote-user'))
      return [...outcomes, ...users.map((user) => user.replace(/:\d+$/, ''))]
    }
    assert.deepEqual(await userOf(''), ['pass', 'pass', 'jane@http://127.0.0.1'])
    assert.deepEqual(await userOf('OIDCRemoteUserClaim email ^(.*)@example.com$ $1'), ['sign_in', 'pass', 'jane'])
  },
)

test('Apache: The eighth sign-in that begins in a browser is an error', { skip }, async (t) => {
  const { url } = await start(t, everything)
  const browser = new Browser('zoe')
  const statuses = []
  for (let begun = 0; begun < 8; begun += 1) statuses.push((await browser.send(url)).status)
  assert.deepEqual(statuses, [302, 302, 302, 302, 302, 302, 302, 503])
})

test('Apache: REMOTE_USER comes from the header of the gateway', { skip }, async (t) => {
  const folder = dataFolder(t)
  chmodSync(folder, 0o755)
  const script = join(folder, 'user')
  writeFileSync(script, '#!/bin/sh\necho "Content-Type: text/plain\n\n$REMOTE_USER"\n', { mode: 0o755 })
  const { url } = await start(
    t,
    `LoadModule cgid_module ${join(modules, 'mod_cgid.so')}\nScriptSock ${join(folder, 'socket')}
     ProxyPass /user !\nScriptAlias /user ${script}\n${theirsOf('SetEnvIf')}`,
  )
  const user = async (headers: Readonly<Record<string, string>>) => (await fetch(`${url}/user`, { headers })).text()
  assert.equal((await user({ 'x-remote-user': 'jane' })).trim(), 'jane')
  assert.equal((await user({})).trim(), '')
})

test('Apache and Gatehouse run side by side: the session of one survives the other', { skip }, async (t) => {
  const gatewayUrl = `http://127.0.0.1:${await freePort()}`
  const there = await startPeer(t, apache, {
    theirs: everything + settings,
    people,
    signInAt: '/',
    callbacks: [`${gatewayUrl}/.gatehouse/callback`],
  })
  const file = await apache.imported?.(
    t,
    there.placed(everything + settings, gatewayUrl, there.application),
    gatewayUrl,
  )
  await runReplica(t, file ?? '', { now: () => Date.now() })
  const browser = new Browser('zoe')
  const hasSession = async (url: string) => (await browser.send(`${url}/orders`)).status === 200

  assert.equal(await hasSession(there.url), false)
  assert.equal((await browser.get(`${there.url}/orders`)).status, 200)
  assert.equal(await hasSession(gatewayUrl), false)
  assert.equal((await browser.get(`${gatewayUrl}/orders`)).status, 200)
  assert.equal(await hasSession(there.url), true)
  assert.equal(await hasSession(gatewayUrl), true)
})
