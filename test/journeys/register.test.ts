// Slow: 7 s, each command is a process of its own
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Configuration } from 'oidc-provider'
import { Browser } from '../support/browser.ts'
import { withFeatures } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { startProvider, type TestProvider } from '../support/provider.ts'
import { startRecordingApplication } from '../support/recording-application.ts'

const initialToken = 'the-initial-access-token'
const features = {
  registration: { enabled: true, initialAccessToken: initialToken },
  // The token for the registration is replaced with each change.
  registrationManagement: { enabled: true, rotateRegistrationAccessToken: true },
} as unknown as NonNullable<Configuration['features']>

interface Site {
  readonly provider: TestProvider
  readonly url: string
  readonly cwd: string
  /** Runs the program in the folder of the configuration. */
  run(...args: readonly string[]): Promise<{ readonly code: unknown; readonly out: string; readonly err: string }>
  read(name: string): string
  write(name: string, text: string): void
}

/** A configuration whose client does not exist yet at the provider. */
async function startSite(t: TestContext, adjust = withFeatures(features)): Promise<Site> {
  const [{ url: application }, port] = [await startRecordingApplication(t), await freePort()]
  const provider = await startProvider(t, {
    ...{ client_id: 'other', client_secret: 'other', redirect_uris: ['http://127.0.0.1:1/cb'] },
    ...{ post_logout_redirect_uris: [], backchannel_logout_uri: 'http://127.0.0.1:1/', adjust },
  })
  const url = `http://127.0.0.1:${port}`
  const yaml = `version: 1
listen: 127.0.0.1:${port}
external_url: ${url}
provider:
  issuer: ${provider.issuer}
  client_id: unregistered # gatehouse register writes it
  client_secret: { file: secrets/client_secret }
upstreams:
  orders: { url: "${application.origin}" }
`
  const cwd = folderWith(t, { 'gateway.yaml': yaml, token: `${initialToken}\n` })
  return {
    ...{ provider, url, cwd },
    run: async (...args) => {
      const command = startCommand(t, [...args], { cwd })
      return { code: await command.ended, out: command.out(), err: command.err() }
    },
    read: (name) => readFileSync(join(cwd, name), 'utf8'),
    write: (name, text) => writeFileSync(join(cwd, name), text),
  }
}

test('gatehouse register never writes its state where a rule would publish it', async (t) => {
  const site = await startSite(t)
  mkdirSync(join(site.cwd, 'public'))
  symlinkSync(join(site.cwd, 'public'), join(site.cwd, 'link'))
  const files = '  pages: { path: /pages, rules: [{ path: /pages/*, access: public, respond: { files: public } }] }'
  site.write('gateway.yaml', `${site.read('gateway.yaml')}${files}\n`)

  for (const state of ['public/state.json', 'link/state.json']) {
    const { code, err } = await site.run('register', '--token', 'token', '--state', state)
    assert.notEqual(code, 0)
    assert.match(err, /would be published, because a rule responds with the files of .*public: name another file/)
  }
  assert.deepEqual(readdirSync(join(site.cwd, 'public')), [])
})

test('gatehouse register makes a client with which people sign in, and --update follows the configuration', async (t) => {
  const site = await startSite(t)

  const dry = await site.run('register', '--dry-run', '--token', 'token')
  assert.equal(dry.code, 0, dry.err)
  const wanted = (JSON.parse(dry.out) as { readonly register: Readonly<Record<string, unknown>> }).register
  assert.deepEqual(wanted['redirect_uris'], [`${site.url}/.gatehouse/callback`])
  assert.equal(existsSync(join(site.cwd, 'gatehouse-registration.json')), false)

  const registered = await site.run('register', '--token', 'token', '--write')
  assert.equal(registered.code, 0, registered.err)
  assert.doesNotMatch(registered.out, /differs/)
  const secret = site.read('secrets/client_secret').trim()
  assert.ok(secret.length > 20)
  assert.equal(registered.out.includes(secret), false)
  for (const name of ['secrets/client_secret', 'gatehouse-registration.json'])
    assert.equal(statSync(join(site.cwd, name)).mode & 0o777, 0o600, name)
  assert.match(site.read('gateway.yaml'), /client_id: "[\w-]+" # gatehouse register writes it/)

  const gateway = startCommand(t, ['run'], { cwd: site.cwd })
  await gateway.said('gatehouse is ready')
  assert.equal((await new Browser('jane').get(site.url)).body, 'ok')

  assert.equal((await site.run('check', '--registration')).code, 0)
  const more = site
    .read('gateway.yaml')
    .replace(
      'upstreams:',
      'upstreams:\n  wiki: { url: "http://127.0.0.1:1", external_url: "http://wiki.localhost:8080" }',
    )
  site.write('gateway.yaml', more)
  const differs = await site.run('check', '--registration')
  assert.equal(differs.code, 1)
  assert.match(differs.out, /redirect_uris http:\/\/wiki\.localhost:8080\/\.gatehouse\/callback is not registered/)

  const unchanged = await site.run('register', '--update', '--dry-run')
  assert.match(unchanged.out, /Nothing is changed/)
  assert.equal((await site.run('check', '--registration')).code, 1)
  const updated = await site.run('register', '--update')
  assert.equal(updated.code, 0, updated.err)
  assert.match(updated.out, /Changed the client/)
  assert.equal((await site.run('check', '--registration')).code, 0)
  assert.match((await site.run('register', '--update')).out, /Nothing has to be changed/)
  assert.equal(site.read('secrets/client_secret').trim(), secret)
})

test('A second registration, a wrong token and a provider without registration get an error that says what to do', async (t) => {
  const site = await startSite(t)
  site.write('wrong', 'wrong')

  const wrong = await site.run('register', '--token', 'wrong')
  assert.equal(wrong.code, 1)
  assert.match(wrong.err, /returned 401: invalid_token/)
  assert.doesNotMatch(wrong.err, /--token/)
  assert.match(
    (await site.run('register')).err,
    /returned 401: invalid_token: no access token provided; if .* token, give its file with --token/,
  )
  assert.match(
    (await site.run('register', '--update')).err,
    /has no client at .*: run gatehouse register, or name its file with --state/,
  )
  assert.match((await site.run('register', '--provider', 'a')).err, /no provider "a"; known: provider/)
  assert.equal((await site.run('register', '--token', 'token')).code, 0)
  assert.match((await site.run('register', '--token', 'token')).err, /has a client at .* already: use --update/)
  site.write('gatehouse-registration.json', '{')
  assert.match((await site.run('register', '--update')).err, /is not a file of gatehouse register/)

  const without = await startSite(t, (base) => base)
  assert.match(
    (await without.run('register')).err,
    /announces no registration_endpoint: register the client there by hand/,
  )
})

test('A registration is found after the slash at the end of the issuer has changed', async (t) => {
  const site = await startSite(t)
  assert.equal((await site.run('register', '--token', 'token', '--write')).code, 0)
  const { issuer } = site.provider
  const state = () => site.read('gatehouse-registration.json')
  site.write('gatehouse-registration.json', state().replace(`"${issuer}"`, `"${issuer}/"`))

  assert.equal((await site.run('check', '--registration')).code, 0)

  const { clients } = JSON.parse(state()) as { readonly clients: object }
  assert.deepEqual(Object.keys(clients), [issuer])
  assert.match((await site.run('register', '--token', 'token')).err, /has a client at .* already/)
})

test('When the secret cannot be written, the registration is not lost', async (t) => {
  const site = await startSite(t)
  site.write('secrets', 'a file in place of the folder')

  const { code, err } = await site.run('register', '--token', 'token')

  assert.equal(code, 1)
  assert.match(err, /client_secret cannot be written/)
  assert.match(site.read('gatehouse-registration.json'), /registration_access_token/)
})

test('A secret in an environment variable is printed once, and names the variable', async (t) => {
  const site = await startSite(t)
  site.write('gateway.yaml', site.read('gateway.yaml').replace('file: secrets/client_secret', 'env: ORDERS_SECRET'))

  const { code, out, err } = await site.run('register', '--token', 'token')

  assert.equal(code, 0, err)
  assert.match(out, /shown only now: export ORDERS_SECRET='[\w-]+'/)
  assert.match(out, /Write client_id: [\w-]+ into gateway\.yaml/)
})

test('What a provider has registered differently is said, and one that shows nothing says so', async (t) => {
  const site = await startSite(t)
  const registered = { client_id: 'chosen', client_secret: 'by the provider', client_name: 'Renamed' }
  site.provider.fault('/reg', (_req, res) => {
    const metadata = {
      redirect_uris: [`${site.url}/.gatehouse/callback`, 'https://old.example.com/cb'],
      scope: 'openid',
    }
    res.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ ...registered, ...metadata }))
  })

  const { code, out } = await site.run('register', '--token', 'token')

  assert.equal(code, 0)
  assert.match(out, /differs: backchannel_logout_uri is not registered/)
  assert.match(out, /differs: scope is registered as "openid"; the gateway needs "openid profile email/)
  assert.match(
    out,
    /note: redirect_uris https:\/\/old\.example\.com\/cb is registered, and the gateway does not use it/,
  )
  assert.match((await site.run('register', '--update')).err, /has given no address or token to read or change/)
})

test('gatehouse register prints what to do by hand at a provider without OpenID Connect', async (t) => {
  const site = await startSite(t)
  const endpoints = ['authorization', 'token', 'userinfo'].map((name) => `${name}_endpoint: http://127.0.0.1:1/${name}`)
  const kind = `kind: oauth2\n  subject: id\n  metadata: { ${endpoints.join(', ')} }`
  site.write('gateway.yaml', site.read('gateway.yaml').replace('  client_id:', `  ${kind}\n  client_id:`))

  const { code, out, err } = await site.run('register', '--dry-run')

  assert.notEqual(code, 0)
  assert.equal(out, '')
  assert.match(
    err,
    /announces no registration_endpoint: register the client there by hand, as gatehouse check prints it/,
  )
})
