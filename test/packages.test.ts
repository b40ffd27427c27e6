import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { bundledModules, bundledPackages } from './support/bundle.ts'

const root = new URL('../', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, root), 'utf8')

interface Locked {
  readonly version?: string
  readonly resolved?: string
  readonly link?: boolean
  readonly integrity?: string
  readonly hasInstallScript?: boolean
  readonly license?: string
}

const { packages } = JSON.parse(read('package-lock.json')) as { readonly packages: Record<string, Locked> }
/** The packages whose code runs in production: `name@version` → its entry in the lock file. */
const bundled = new Map(
  bundledPackages().map((path) => {
    const entry = packages[path] as Locked
    return [`${path.split('node_modules/').at(-1)}@${entry.version}`, entry]
  }),
)
const bundledNames = [...bundled.keys()].sort()

// Hosts where to say thank you; nothing is fetched from there.
for (const [file, thanked] of [
  ['package-lock.json', ['github.com', 'opencollective.com']],
  ['.ci/site/package-lock.json', ['github.com', 'opencollective.com', 'tidelift.com']],
] as const)
  test(`${file} names no other host, and each package by its hash`, () => {
    const text = read(file)
    const hosts = new Set([...text.matchAll(/https?:\/\/([^/"]+)/g)].map(([, host]) => host))
    const entries = Object.entries((JSON.parse(text) as { readonly packages: Record<string, Locked> }).packages)

    // The workspaces of this repository are folders, and links to them.
    const isOurs = ([path, { link }]: (typeof entries)[number]) => link === true || !path.includes('node_modules/')
    const fetched = entries.filter((entry) => !isOurs(entry))
    assert.deepEqual([...hosts].sort(), thanked)
    assert.deepEqual(
      fetched.filter(([, { resolved, integrity }]) => resolved !== undefined || !integrity?.startsWith('sha512-')),
      [],
    )
    for (const [, { resolved }] of entries.filter(isOurs)) assert.ok(resolved === undefined || existsSync(resolved))
  })

test('no package of the program runs a script when it is installed, and each says its license', () => {
  assert.deepEqual(
    [...bundled.values()].filter(({ hasInstallScript, license }) => hasInstallScript === true || license === undefined),
    [],
  )
})

test('the manifest names no package that an installation would have to fetch', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, unknown>

  for (const kind of ['dependencies', 'optionalDependencies', 'peerDependencies', 'bundleDependencies'])
    assert.ok(!(kind in manifest), kind)
})

interface Component {
  readonly name: string
  readonly version: string
  readonly hashes: readonly unknown[]
  readonly licenses: readonly unknown[]
}

const bom = JSON.parse(execFileSync('.ci/node', ['.ci/sbom.mjs'], { cwd: root, encoding: 'utf8' })) as {
  readonly bomFormat: string
  readonly metadata: { readonly component: { readonly name: string } }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

test('each package that the sources load has its reason in a decision, and no more of them do', () => {
  const page = read('docs/decisions/0009-few-packages.md')
  const explained = [...page.matchAll(/^\| `([^`]+)` /gm)].map(([, name]) => name)
  const loaded = bom.dependencies.find(({ ref }) => ref.startsWith('@gatehouse-proxy/gatehouse@'))?.dependsOn ?? []

  assert.deepEqual(
    explained.toSorted(),
    loaded.map((ref) => ref.replace(/@[^@]*$/, '')),
  )
  assert.match(page, new RegExp(`\\(${bundled.size} with all that they need\\)`))
})

test('the bill of materials has each package of the program with hash and license, and no other', () => {
  assert.equal(bom.bomFormat, 'CycloneDX')
  assert.equal(bom.metadata.component.name, '@gatehouse-proxy/gatehouse')
  assert.deepEqual(bom.components.map(({ name, version }) => `${name}@${version}`).sort(), bundledNames)
  for (const { name, hashes, licenses } of bom.components) assert.ok(hashes.length > 0 && licenses.length > 0, name)
})

test('the program is delivered with the license of each of its packages', () => {
  const [, ...parts] = read('dist/LICENSES.txt').split(/\n-{80}\n/)

  assert.deepEqual(parts.map((text) => /^\s*(\S+) (\S+) \(/.exec(text)?.slice(1).join('@')).sort(), bundledNames)
  for (const text of parts) assert.match(text, /copyright|permission|license/i)
  for (const text of parts) assert.ok(text.length > 500, text)
})

test('the page about security names tests that there are, and each advisory that is tried', () => {
  const page = read('docs/security.md')
  const rows = page.split('\n').filter((line) => line.includes('](../test/'))
  const missing = rows.flatMap((row) =>
    [...row.matchAll(/\]\(\.\.\/(test\/[^)]+)\)([^[]*)/g)].flatMap(([, file = '', names = '']) => {
      if (!existsSync(new URL(file, root))) return [file]
      const text = file.endsWith('.ts') ? read(file) : ''
      return [...names.matchAll(/“([^”]+)”/g)].flatMap(([, name = '']) =>
        text.includes(name) ? [] : [`${file}: ${name}`],
      )
    }),
  )
  const advisories = readdirSync(new URL('test/advisories/', root)).filter((name) => /^(?:cve|ghsa)-/.test(name))

  assert.deepEqual(missing, [])
  assert.ok(advisories.length >= 40)
  assert.deepEqual(
    advisories.filter((name) => !page.includes(`(../test/advisories/${name})`)),
    [],
  )
})

test('the program contains no compiler of schemas for endpoints, which have none', () => {
  assert.deepEqual(
    bundledNames.filter((name) => /ajv-compiler|json-stringify-compiler|light-my-request/.test(name)),
    [],
  )
})

// V8 keeps the text of a module, with two bytes for each character if one of them is not ASCII.
test('the text of the program has only ASCII characters, which need less memory', () => {
  assert.deepEqual(
    bundledModules().flatMap(({ name, text }) => (/[^\p{ASCII}]/u.test(text) ? name : [])),
    [],
  )
})
