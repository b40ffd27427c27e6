import assert from 'node:assert/strict'
import { existsSync, symlinkSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { readInitCall } from '../../src/cli/init.ts'
import { loadConfig } from '../../src/config/load.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'

const secrets = { CLIENT_SECRET: 'correct horse battery', SESSION_KEY: Buffer.alloc(32, 7).toString('base64') }

const given = {
  issuer: 'https://id.example.com',
  'client-id': 'orders',
  url: 'https://orders.example.com',
  upstream: 'http://127.0.0.1:3000',
}

function argsOf(options: Readonly<Record<string, string>>): string[] {
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
}

/**
 * Calls init with these arguments. With `answers` there is a terminal, where a person types them.
 */
async function callInit(
  t: TestContext,
  args: readonly string[],
  answers?: readonly string[],
  folder = folderWith(t, {}),
  env: Readonly<Record<string, string>> = {},
) {
  const file = join(folder, 'gateway.yaml')
  const call = readInitCall([...args, '--out', file])
  if (!('carryOut' in call)) return { code: 2, said: call, file, folder }
  const { said, terminal } = recordingTerminal(env)
  const left = [...(answers ?? [])]
  const ask = async () => left.shift() ?? assert.fail('more questions than answers')
  const code = await call.carryOut(answers === undefined ? terminal : { ...terminal, ask })
  return { code, said, file, folder, left }
}

for (const [what, options] of Object.entries({
  'sessions in memory': given,
  'a gateway on this machine': { ...given, issuer: 'http://localhost:8081', url: 'http://localhost:8080' },
  'sessions in Redis': { ...given, store: 'rediss://redis.example.com:6379/1' },
  'sessions in a file': { ...given, store: 'file:/var/lib/gatehouse/{a},b.db' },
  'Google as provider': { ...given, issuer: 'https://accounts.google.com' },
  'answers with characters that are special in YAML': {
    ...given,
    'client-id': '0123: {#"*\' [yes]',
    issuer: 'https://id.example.com/a,b/{c}',
  },
}))
  test(`The written file is valid and its tests pass: ${what}`, async (t) => {
    const { code, said, file } = await callInit(t, argsOf(options))

    assert.equal(code, 0, JSON.stringify(said))
    const loaded = loadConfig(file, secrets)
    assert.ok(loaded.ok, JSON.stringify(loaded.ok || loaded.diagnostics))
    assert.deepEqual(
      loaded.warnings.map(({ path }) => path),
      options.url.startsWith('http:') ? ['external_url'] : [],
    )
    assert.deepEqual(failingTests(loaded.config), [])
    const { externalUrl, upstreams } = loaded.config
    const [provider] = loaded.config.providers
    assert.deepEqual(
      [provider.issuer, provider.client_id, externalUrl.origin, upstreams[0]?.url.origin],
      [options.issuer, options['client-id'], options.url, options.upstream],
    )
  })

test('init prints what to register at the provider, and the next steps', async (t) => {
  const { said } = await callInit(t, argsOf({ ...given, store: 'rediss://redis:6379' }))

  assert.ok('out' in said)
  assert.match(said.out, /redirect URI +https:\/\/orders\.example\.com\/\.gatehouse\/callback/)
  assert.match(said.out, /export CLIENT_SECRET=[^]*export SESSION_KEY=[^]*gatehouse check --config/)
})

test('With sessions in a file, init writes its path and asks for a key', async (t) => {
  const { said, file } = await callInit(t, argsOf({ ...given, store: 'file:sessions.db' }))

  const loaded = loadConfig(file, secrets)
  assert.ok(loaded.ok && 'out' in said)
  assert.deepEqual(loaded.config.session.store, { kind: 'file', file: join(dirname(file), 'sessions.db') })
  assert.match(said.out, /export SESSION_KEY=/)
})

test('In a clone of the sources, init prints the next steps as npm commands', async (t) => {
  const env = { npm_lifecycle_event: 'gatehouse' }
  const { said } = await callInit(t, argsOf(given), undefined, folderWith(t, {}), env)

  assert.ok('out' in said)
  for (const name of ['check', 'doctor', 'run'])
    assert.match(said.out, new RegExp(`^  npm run -s gatehouse -- ${name} --config`, 'm'))
})

test('The gateway listens on another port than the application', async (t) => {
  const { file } = await callInit(t, argsOf({ ...given, upstream: 'http://127.0.0.1:8080' }))

  const loaded = loadConfig(file, secrets)
  assert.ok(loaded.ok)
  assert.equal(loaded.config.listen.port, 8081)
})

test('Without a terminal, init names the missing options and writes nothing', async (t) => {
  const { code, said, file } = await callInit(t, ['--issuer', given.issuer, '--url', given.url])

  assert.equal(code, 2)
  assert.ok('err' in said)
  assert.match(said.err, /--client-id orders\n +--upstream http:\/\/127\.0\.0\.1:3000\n$/)
  assert.doesNotMatch(said.err, /--issuer|--url|--store/)
  assert.ok(!existsSync(file))
})

test('On a terminal, init asks for each missing value until the answer is valid', async (t) => {
  const answers = ['', 'id.example.com', given.issuer, ' orders ', 'http://127.0.0.1:3000/path', given.upstream, '']
  const { code, said, file, left } = await callInit(t, ['--url', given.url], answers)

  assert.equal(code, 0)
  assert.deepEqual(left, [])
  assert.ok('out' in said)
  assert.match(said.out, /must be an http or https URL such as https:\/\/id\.example\.com/)
  const loaded = loadConfig(file, secrets)
  assert.ok(loaded.ok)
  assert.deepEqual([loaded.config.providers[0].client_id, loaded.config.session.store.kind], ['orders', 'memory'])
})

for (const [option, value, why] of [
  ['issuer', 'http://id.example.com', /must be https/],
  ['issuer', 'https://id.example.com/.well-known/openid-configuration', /before \/\.well-known\//],
  ['client-id', ' ', /must not be empty/],
  ['url', 'https://orders.example.com/app', /without the path/],
  ['upstream', '127.0.0.1:3000', /must begin with the scheme: http:\/\/127\.0\.0\.1:3000/],
  ['upstream', 'ftp://127.0.0.1', /http or https URL/],
  ['store', '/var/lib/sessions.db', /must be memory, file:\/PATH\/sessions\.db, or the URL of a Redis/],
  ['store', 'file:', /must be memory, file:\/PATH/],
  ['store', 'file:///var/lib/sessions.db', /must be memory, file:\/PATH/],
  ['store', 'rediss://:secret-of-redis@redis:6379', /must not contain a password/],
] as const)
  test(`An invalid option is rejected before a file is written: --${option} ${value}`, async (t) => {
    const { code, said, file } = await callInit(t, argsOf({ ...given, [option]: value }))

    assert.equal(code, 2)
    assert.match(JSON.stringify(said), why)
    assert.doesNotMatch(JSON.stringify(said), /secret-of-redis/)
    assert.ok(!existsSync(file))
  })

test('init does not write through a dangling symbolic link', async (t) => {
  const folder = folderWith(t, {})
  symlinkSync(join(folder, 'elsewhere'), join(folder, 'gateway.yaml'))

  await assert.rejects(callInit(t, argsOf(given), undefined, folder), /gateway\.yaml cannot be written/)
  assert.ok(!existsSync(join(folder, 'elsewhere')))
})

test('An existing file is overwritten only with --force', async (t) => {
  const folder = folderWith(t, { 'gateway.yaml': 'mine', 'gateway.schema.json': 'mine too' })

  await assert.rejects(
    callInit(t, argsOf(given), undefined, folder),
    /gateway\.yaml exists already; --force overwrites it/,
  )
  assert.equal(readFileSync(join(folder, 'gateway.yaml'), 'utf8'), 'mine')

  const { code } = await callInit(t, [...argsOf(given), '--force'], undefined, folder)
  assert.equal(code, 0)
  assert.match(readFileSync(join(folder, 'gateway.yaml'), 'utf8'), /^version: 1$/m)
})

test('init writes the schema for editors, unless the file exists', async (t) => {
  const [without, withOne] = [folderWith(t, {}), folderWith(t, { 'gateway.schema.json': 'mine' })]

  for (const folder of [without, withOne]) await callInit(t, argsOf(given), undefined, folder)

  const schemaIn = (folder: string) => readFileSync(join(folder, 'gateway.schema.json'), 'utf8')
  assert.equal((JSON.parse(schemaIn(without)) as { type: string }).type, 'object')
  assert.equal(schemaIn(withOne), 'mine')
})

test('Answers that contradict each other are reported', async (t) => {
  const { code, said } = await callInit(t, argsOf({ ...given, url: 'http://localhost:3000' }))

  assert.equal(code, 1)
  assert.ok('err' in said)
  assert.match(said.err, /the address of the gateway itself[^]*was written, but is invalid/)
})

for (const [issuer, listed] of [
  ['https://id.example.com', 'openid, profile, email, offline_access'],
  ['https://keycloak.example.com/realms/main', 'openid, profile, email'],
  ['https://accounts.google.com', 'openid, profile, email'],
] as const)
  test(`The file lists no scopes; its comment names the default scopes for ${issuer}`, async (t) => {
    const { file } = await callInit(t, argsOf({ ...given, issuer }))

    assert.ok(readFileSync(file, 'utf8').includes(`# scopes: [${listed}]\n`))
    const loaded = loadConfig(file, secrets)
    assert.ok(loaded.ok)
    assert.equal(loaded.config.providers[0].scopes, undefined)
  })
