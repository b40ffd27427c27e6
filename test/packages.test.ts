import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, root), 'utf8')

interface Locked {
  readonly version?: string
  readonly resolved?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
  readonly license?: string
}

const { dependencies } = JSON.parse(read('package.json')) as { readonly dependencies: Record<string, string> }
const { packages } = JSON.parse(read('package-lock.json')) as { readonly packages: Record<string, Locked> }
const locked = Object.entries(packages).filter(([path]) => path !== '')
const inProduction = locked.filter(([, { dev }]) => dev !== true)
const nameOf = (path: string) => path.split('node_modules/').at(-1) ?? ''

test('the lock file names no host, and each package by its hash', () => {
  const text = read('package-lock.json')
  // Where to say thank you; nothing is fetched from there.
  const hosts = new Set([...text.matchAll(/https?:\/\/([^/"]+)/g)].map(([, host]) => host))

  assert.doesNotMatch(text, /"resolved"/)
  assert.deepEqual([...hosts].sort(), ['github.com', 'opencollective.com'])
  assert.deepEqual(
    locked.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path),
    [],
  )
})

test('no package of production runs a script when it is installed, and each says its license', () => {
  assert.deepEqual(
    inProduction.filter(([, { hasInstallScript, license }]) => hasInstallScript === true || license === undefined),
    [],
  )
})

test('each package of production has its reason in a decision, and no more of them do', () => {
  const page = read('docs/decisions/0009-few-packages.md')
  const explained = [...page.matchAll(/^\| `([^`]+)` /gm)].map(([, name]) => name)

  assert.deepEqual(explained.toSorted(), Object.keys(dependencies).toSorted())
  const names = new Set(inProduction.map(([path, { version }]) => `${nameOf(path)}@${version}`))
  assert.match(page, new RegExp(`\\(${names.size} with all that they need\\)`))
})

test('the bill of materials has each package of production with hash and license, and no other', () => {
  const bom = JSON.parse(execFileSync(process.execPath, ['.ci/sbom.mjs'], { cwd: root, encoding: 'utf8' })) as {
    readonly bomFormat: string
    readonly metadata: { readonly component: { readonly name: string } }
    readonly components: readonly { name: string; version: string; hashes: unknown[]; licenses: unknown[] }[]
    readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
  }

  assert.equal(bom.bomFormat, 'CycloneDX')
  assert.equal(bom.metadata.component.name, 'gatehouse')
  const named = bom.components.map(({ name, version }) => `${name}@${version}`)
  const wanted = new Set(inProduction.map(([path, { version }]) => `${nameOf(path)}@${version}`))
  assert.deepEqual(named.toSorted(), [...wanted].toSorted())
  for (const { name, hashes, licenses } of bom.components) assert.ok(hashes.length > 0 && licenses.length > 0, name)
  assert.deepEqual(
    bom.dependencies
      .find(({ ref }) => ref.startsWith('gatehouse@'))
      ?.dependsOn.map((ref) => ref.replace(/@[^@]*$/, '')),
    Object.keys(dependencies),
  )
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
