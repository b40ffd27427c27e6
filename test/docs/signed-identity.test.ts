// Slow: 40 s, the programs of the page are built in three languages
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { request } from 'undici'
import { Keyring } from '../../src/core/seal.ts'
import { signJwt } from '../../src/identity/signed/signing-key.ts'
import { fromStored, type StoredKey } from '../../src/keys/rotating-key.ts'
import { audienceOf } from '../../src/session/record/record.ts'
import { secrets, startWorld } from '../support/world.ts'
import { blocksOf, pages } from './markdown.ts'

// The programs of docs/signed-identity.md against a running gateway. Node.js runs always. The
// others run in `npm run test:all`, because they need a compiler and packages from registries.

const run = promisify(execFile)
const isLong = process.env['ALL'] !== undefined
const limits = { timeout: 600_000 }
const nodeModules = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))
/** Packages of other languages stay here for the next run. */
const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'gatehouse', 'signed-identity')

const page = pages.find(({ path }) => path === 'docs/signed-identity.md')
assert.ok(page !== undefined)
const programs = new Map(blocksOf(page).map(({ language, text }) => [language, text]))

interface Program {
  readonly language: string
  readonly file: string
  /** Calls the function of the page for each argument, and prints `sub email` or `rejected`. */
  readonly main: readonly [file: string, text: string]
  /** Makes the packages available. @throws {Error} when the machine lacks what is needed */
  prepare(): Promise<void>
  start(folder: string, args: readonly string[]): Promise<string>
}

const node: Program = {
  language: 'js',
  file: 'identity.mjs',
  main: [
    'main.mjs',
    `import { identityOf } from './identity.mjs'
for (const token of process.argv.slice(2)) {
  const print = ({ sub, email }) => console.log(sub, email)
  await identityOf({ 'x-gatehouse-identity': token }).then(print, () => console.log('rejected'))
}
`,
  ],
  prepare: async () => {},
  start: (folder, args) => outputOf(process.execPath, [join(folder, 'main.mjs'), ...args]),
}

const python: Program = {
  language: 'python',
  file: 'identity.py',
  main: [
    'main.py',
    `import sys
from identity import identity_of

for token in sys.argv[1:]:
    try:
        claims = identity_of({"X-Gatehouse-Identity": token})
        print(claims["sub"], claims["email"])
    except Exception:
        print("rejected")
`,
  ],
  prepare: async () => {
    const target = join(cache, 'python')
    if (!existsSync(join(target, 'jwt')))
      await run('python3', ['-m', 'pip', 'install', '-q', '--target', target, 'PyJWT[crypto]==2.15.1'], limits)
  },
  start: (folder, args) =>
    outputOf('python3', [join(folder, 'main.py'), ...args], {
      env: { ...process.env, PYTHONPATH: join(cache, 'python'), PYTHONDONTWRITEBYTECODE: '1' },
    }),
}

const go: Program = {
  language: 'go',
  file: 'identity.go',
  main: [
    'main.go',
    `package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	for _, token := range os.Args[1:] {
		claims, err := identityOf(http.Header{"X-Gatehouse-Identity": {token}})
		if err != nil {
			fmt.Println("rejected")
		} else {
			fmt.Println(claims["sub"], claims["email"])
		}
	}
}
`,
  ],
  prepare: async () => void (await run('go', ['version'], limits)),
  start: async (folder, args) => {
    writeFileSync(join(folder, 'go.mod'), 'module identity\n')
    const packages = ['github.com/golang-jwt/jwt/v5@v5.3.1', 'github.com/MicahParks/keyfunc/v3@v3.9.1']
    await run('go', ['get', ...packages], { ...limits, cwd: folder })
    await run('go', ['build', '-o', 'main', '.'], { ...limits, cwd: folder })
    return outputOf(join(folder, 'main'), args)
  },
}

const jar = join(cache, 'java', 'nimbus-jose-jwt-10.3.jar')
const java: Program = {
  language: 'java',
  file: 'Identity.java',
  main: [
    'Main.java',
    `final class Main {
  public static void main(String[] tokens) throws Exception {
    var identity = new Identity();
    for (var token : tokens) {
      try {
        var claims = identity.of(token);
        System.out.println(claims.getSubject() + " " + claims.getStringClaim("email"));
      } catch (Exception invalid) {
        System.out.println("rejected");
      }
    }
  }
}
`,
  ],
  prepare: async () => {
    await run('javac', ['-version'], limits)
    const artifact = '-Dartifact=com.nimbusds:nimbus-jose-jwt:10.3:jar'
    if (!existsSync(jar))
      await run('mvn', ['-B', '-q', 'dependency:copy', artifact, `-DoutputDirectory=${join(cache, 'java')}`], limits)
  },
  start: async (folder, args) => {
    await run('javac', ['-cp', jar, '-d', folder, join(folder, 'Identity.java'), join(folder, 'Main.java')], limits)
    return outputOf('java', ['-cp', `${jar}:${folder}`, 'Main', ...args])
  },
}

async function outputOf(program: string, args: readonly string[], options: object = {}): Promise<string> {
  const { stdout } = await run(program, [...args], { ...limits, ...options })
  return stdout
}

/** A gateway, and tokens that it has or has not signed for the audience `wiki`. */
async function startSigning(t: TestContext) {
  let seen: Readonly<Record<string, string | string[] | undefined>> = {}
  const server = createServer((req, res) => {
    seen = req.headers
    res.end('ok')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const upstream = new URL(`http://127.0.0.1:${address.port}`)
  const world = await startWorld(t, {
    ...{ store: 'redis', upstream, headers: 'Authorization: { bearer: id_token }' },
    upstreamSettings: `signed_identity: { audience: wiki, claims: [email, groups] }
  other:
    path: /other
    url: ${upstream.origin}
    signed_identity: true`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const tokenAt = async (path: string) => {
    const { statusCode, body } = await request(`${world.url}${path}`, { headers: { cookie: jane.cookieHeader } })
    await body.dump()
    assert.equal(statusCode, 200)
    return String(seen['x-gatehouse-identity'])
  }

  const valid = await tokenAt('/')
  const idToken = String(seen['authorization']).slice('Bearer '.length)
  const otherAudience = await tokenAt('/other')
  world.moveClock(-3_600_000)
  const expired = await tokenAt('/')

  const key = await storedKey(t, world)
  const [header = '', payload = '', signature = ''] = valid.split('.')
  const claims = decoded(payload)
  const withHeader = (more: object) => signJwt(key, claims, { ...decoded(header), ...more })
  assert.equal(withHeader({}).split('.').slice(0, 2).join('.'), `${header}.${payload}`)
  const rejected = {
    'a token that is absent': '',
    'another audience': otherAudience,
    'an expired token': expired,
    'an ID Token': idToken,
    'another type': withHeader({ typ: 'at+jwt' }),
    'another issuer': signJwt(key, { ...claims, iss: 'https://other.example.com' }),
    'no expiry': signJwt(key, { ...claims, exp: undefined }),
    'changed claims': `${header}.${encoded({ ...claims, sub: 'admin' })}.${signature}`,
    'no signature': `${encoded({ ...decoded(header), alg: 'none' })}.${payload}.`,
  }
  return { url: world.url, valid, rejected }
}

/** The private key of the gateway, read from its store. */
async function storedKey(t: TestContext, world: Awaited<ReturnType<typeof startWorld>>) {
  const redis = new Redis(world.redis?.url ?? '')
  t.after(() => redis.disconnect())
  const names = await redis.keys('*d:*')
  const documents = await Promise.all(names.map((name) => redis.hgetBuffer(name, 'sealed')))
  const audience = audienceOf({ issuer: world.provider.issuer, client_id: 'orders' })
  const keyring = new Keyring([Buffer.from(secrets.SESSION_KEY, 'base64')])
  // The other document is sealed for the address of the key set.
  const [plain] = documents.flatMap(
    (sealed) => keyring.open(sealed ?? Buffer.alloc(0), `gatehouse signing keys for ${audience}`) ?? [],
  )
  const [stored] = JSON.parse(plain?.toString() ?? '[]') as readonly StoredKey[]
  assert.ok(stored !== undefined)
  return fromStored(stored)
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function decoded(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
}

mkdirSync(nodeModules, { recursive: true })
const folders = mkdtempSync(join(nodeModules, 'signed-identity-'))
after(() => rmSync(folders, { recursive: true, force: true }))

for (const program of [node, python, go, java])
  test(`The ${program.language} program of the page verifies signed identities, and rejects everything else`, async (t) => {
    if (program !== node && !isLong) return t.skip('runs in npm run test:all')
    const missing = await program.prepare().then(
      () => undefined,
      (error: unknown) => String(error).split('\n')[0],
    )
    if (missing !== undefined) return t.skip(`cannot run here: ${missing}`)
    const { url, valid, rejected } = await startSigning(t)
    const folder = join(folders, program.language)
    mkdirSync(folder)
    const text = programs.get(program.language) ?? ''
    assert.ok(text.includes('https://wiki.example.com'))
    writeFileSync(join(folder, program.file), text.replaceAll('https://wiki.example.com', url))
    writeFileSync(join(folder, program.main[0]), program.main[1])

    const output = await program.start(folder, [valid, ...Object.values(rejected)])

    const lines = output.trim().split('\n')
    assert.equal(lines[0], 'jane jane.doe@example.com')
    assert.deepEqual(
      Object.keys(rejected).map((what, at) => [what, lines[at + 1]]),
      Object.keys(rejected).map((what) => [what, 'rejected']),
    )
  })
