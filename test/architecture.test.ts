import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, posix } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { importsOf, isCode } from './support/sources.ts'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const src = join(root, 'src')

interface Row {
  readonly rooms: readonly string[]
  readonly packages: readonly string[]
}

/** The rows of the nth table of a Markdown text, without its head. */
function tableOf(markdown: string, nth: number): string[][] {
  const tables: string[][][] = []
  let isInside = false
  for (const line of markdown.split('\n')) {
    if (!line.startsWith('|')) isInside = false
    else {
      const cells = line.split('|').slice(1, -1)
      if (!isInside) tables.push([])
      isInside = true
      tables.at(-1)?.push(cells.map((cell) => cell.trim()))
    }
  }
  return tables[nth]?.slice(2) ?? []
}

/** Room → what it may use. */
function readMap(markdown: string): Map<string, Row> {
  const listOf = (cell = '') => (cell === '—' ? [] : cell.split(',').map((name) => name.trim()))
  return new Map(
    tableOf(markdown, 1).map(([room = '', rooms, packages]) => [
      room,
      { rooms: listOf(rooms), packages: listOf(packages) },
    ]),
  )
}

/** What each folder of packages/ uses of `src`: a file with its name. */
const entries = 'entries'

/** What is wrong with one source; `file` is its path below src/. */
function violations(file: string, source: string, map: ReadonlyMap<string, Row>): string[] {
  const [room = ''] = file.split('/')
  if (file === 'main.ts' || room === entries) return []
  if (room === file) return [`${file}: only main.ts lies directly in src/`]
  const row = map.get(room)
  if (row === undefined) return [`${file}: "${room}" has no row in src/README.md`]
  return importsOf(source).flatMap((specifier) => {
    if (specifier === undefined) return [`${file}: an import does not name its module`]
    if (!specifier.startsWith('.')) {
      const isAllowed = row.packages.includes(specifier) || row.packages.includes(packageOf(specifier))
      return isAllowed ? [] : [`${file}: "${room}" may not use "${packageOf(specifier)}"`]
    }
    const path = posix.join(posix.dirname(file), specifier)
    // The one command that no installation has.
    if (file === 'cli/demo.ts' && path === '../examples/demo/demo.ts') return []
    if (row.packages.includes(besideOf(path))) return []
    if (path.startsWith('..')) return [`${file}: "${specifier}" lies outside of src/`]
    const entered = path.includes('/') ? path.slice(0, path.indexOf('/')) : path
    return entered === room || row.rooms.includes(entered) ? [] : [`${file}: "${room}" may not enter "${entered}"`]
  })
}

/** `../packages/import/common/notes.ts` → `packages/import`. */
function besideOf(path: string): string {
  return path.split('/').slice(1, 3).join('/')
}

/** `undici/x` → `undici`, `@fastify/x/y` → `@fastify/x`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

const readme = readFileSync(join(src, 'README.md'), 'utf8')
const map = readMap(readme)

test('the map describes each room once, from the ground up', () => {
  const rooms = [...map.keys()]

  assert.ok(rooms.length > 10)
  assert.deepEqual(
    tableOf(readme, 0).map(([room]) => room),
    rooms,
  )
  for (const [index, [room, { rooms: used }]] of [...map].entries())
    for (const name of used)
      assert.ok(rooms.slice(0, index).includes(name), `"${room}" uses "${name}", which is not below it`)
})

test('each source keeps to its room', () => {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).map((path) => path.replaceAll('\\', '/'))

  const found = files.filter(isCode).flatMap((file) => violations(file, readFileSync(join(src, file), 'utf8'), map))

  assert.deepEqual(found, [])
})

test('each relative import leads to a file', () => {
  for (const file of readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(isCode))
    for (const specifier of importsOf(readFileSync(join(src, file), 'utf8')))
      if (specifier?.startsWith('.'))
        assert.ok(existsSync(join(src, dirname(file), specifier)), `${file}: ${specifier}`)
})

const sources = new Map(
  readdirSync(src, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter(isCode)
    .map((file) => [file, readFileSync(join(src, file), 'utf8')]),
)

test('no source exports a part of another room, past the map', () => {
  for (const [file, source] of sources)
    for (const [, specifier = ''] of source.matchAll(/^export [^'"=]*? from '(\.\.?\/[^']*)'/gm)) {
      if (file.startsWith(`${entries}/`)) continue
      const [room] = posix.join(dirname(file), specifier).split('/')
      assert.equal(room, file.split('/')[0], `${file} exports ${specifier}`)
    }
})

test('each permission of the map is used', () => {
  const used = new Map([...map.keys()].map((room) => [room, { rooms: new Set<string>(), packages: new Set<string>() }]))
  for (const [file, source] of sources) {
    const of = used.get(file.slice(0, Math.max(file.indexOf('/'), 0)))
    for (const specifier of of === undefined ? [] : importsOf(source))
      if (specifier?.startsWith('.')) {
        const path = posix.join(dirname(file), specifier)
        of?.rooms.add(path.split('/')[0] ?? '')
        of?.packages.add(besideOf(path))
      } else if (specifier !== undefined) of?.packages.add(specifier).add(packageOf(specifier))
  }

  for (const [room, { rooms, packages }] of map) {
    assert.deepEqual(
      rooms.filter((name) => used.get(room)?.rooms.has(name) !== true),
      [],
      `rooms that "${room}" does not use`,
    )
    assert.deepEqual(
      packages.filter((name) => used.get(room)?.packages.has(name) !== true),
      [],
      `packages that "${room}" does not use`,
    )
  }
})

test('the folders of session use only those below them', () => {
  const floors = ['record', 'store', 'live', 'people', 'cookies']
  for (const [file, source] of sources) {
    const [room, folder = ''] = file.split('/')
    if (room !== 'session') continue
    assert.ok(floors.includes(folder), `${file} lies in no folder of session`)
    for (const specifier of importsOf(source)) {
      const [enteredRoom, entered = ''] = posix.join(dirname(file), specifier ?? '').split('/')
      if (specifier?.startsWith('.') && enteredRoom === 'session')
        assert.ok(floors.indexOf(entered) <= floors.indexOf(folder), `${file} uses ${specifier}`)
    }
  }
})

/** Packages without I/O, and the names that a room without I/O may import from others. */
const withoutInput: Readonly<Record<string, readonly string[]>> = {
  'lru-cache': [],
  'node:crypto': [],
  'node:net': ['BlockList', 'SocketAddress', 'isIP'],
}

test('a room that the map calls "without I/O" has none', () => {
  const rooms = tableOf(readme, 0).flatMap(([room = '', caption = '']) =>
    caption.includes('without I/O') ? [room] : [],
  )
  assert.deepEqual(rooms, ['core'])
  for (const [file, source] of sources)
    for (const [, names = '', specifier = ''] of source.matchAll(/^import (.*?) from '([^.'][^']*)'/gms))
      if (rooms.includes(file.split('/')[0] ?? '')) {
        const allowed = withoutInput[specifier]
        assert.ok(allowed !== undefined, `${file} uses ${specifier}`)
        if (allowed.length > 0)
          for (const name of names.matchAll(/\w+/g)) assert.ok(allowed.includes(name[0]), `${file} uses ${name[0]}`)
      }
})

test('each path that the map names exists', () => {
  for (const [, path = ''] of readme.matchAll(/(?<!node:)\b((?:[a-z0-9-]+\/)+(?:[a-z0-9-]+\.ts)?)(?![a-z])/g))
    assert.ok(existsSync(join(src, path)) || existsSync(join(src, '..', path)), `src/README.md names ${path}`)
})

test('no files import each other in a circle', () => {
  const files = ['src', 'packages'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
  )
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    assert.ok(!path.includes(file), [...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file)) return
    for (const specifier of isCode(file) ? importsOf(readFileSync(join(root, file), 'utf8')) : [])
      if (specifier?.startsWith('.')) visit(posix.join(dirname(file), specifier), [...path, file])
    done.add(file)
  }
  for (const file of files.filter(isCode)) visit(file, [])
})

for (const name of readdirSync(join(root, 'packages')))
  test(`packages/${name} uses nothing of the gateway but its entry, and no package that it does not name`, () => {
    const folder = `packages/${name}`
    const { devDependencies = {} } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as {
      readonly devDependencies?: Readonly<Record<string, string>>
    }
    const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).filter(isCode)
    const used = files.flatMap((file) =>
      importsOf(readFileSync(join(root, folder, file), 'utf8')).map((specifier = '') =>
        specifier.startsWith('.') ? posix.join(folder, posix.dirname(file), specifier) : packageOf(specifier),
      ),
    )
    const outside = new Set(used.filter((path) => !path.startsWith(`${folder}/`) && !path.startsWith('node:')))
    const read = files.flatMap((file) => namedPackages(readFileSync(join(root, folder, file), 'utf8')))

    assert.deepEqual(
      [...new Set([...outside, ...read])].toSorted(),
      [...Object.keys(devDependencies), `src/${entries}/${name}.ts`].toSorted(),
    )
    // The importers read what they are given.
    if (name === 'import') assert.ok(!used.some((path) => path.startsWith('node:')))
  })

/** Packages whose files a source reads, without importing them. */
function namedPackages(source: string): string[] {
  return [...source.matchAll(/textOf\('([^.'/]+)\//g)].map(([, name = '']) => name)
}

const planted = readMap(`
| room | what |
| --- | --- |
| core | words |

| room     | may use rooms  | may use packages          |
| -------- | -------------- | ------------------------- |
| core     | —              | node:timers/promises      |
| provider | core           | undici, @scope/one        |
| session  | core, provider | node:fs                   |
`)

for (const [file, source, found] of [
  ['provider/p.ts', "import { a } from '../session/s.ts'", ['"provider" may not enter "session"']],
  ['provider/p.ts', "import type { A } from '../session/s.ts'", ['"provider" may not enter "session"']],
  ['provider/p.ts', "export * from '../session/s.ts'", ['"provider" may not enter "session"']],
  ['provider/p.ts', "export { a,\n  type B,\n} from\n  '../session/s.ts'", ['"provider" may not enter "session"']],
  ['provider/p.ts', "import '../session/s.ts'", ['"provider" may not enter "session"']],
  ['provider/p.ts', "const s = await import( '../session/s.ts' )", ['"provider" may not enter "session"']],
  ['provider/p.ts', 'const s = await import(`../session/s.ts`)', ['"provider" may not enter "session"']],
  ['provider/p.ts', "let a: import('../session/s.ts').A", ['"provider" may not enter "session"']],
  ['provider/p.ts', 'const s = `${await import("../session/s.ts")}`', ['"provider" may not enter "session"']],
  ['provider/p.ts', "const q = /['\"`]/\nimport '../session/s.ts'", ['"provider" may not enter "session"']],
  [
    'provider/p.ts',
    "const q = a / 2 // it's\nimport '../session/s.ts' /* ' */",
    ['"provider" may not enter "session"'],
  ],
  ['provider/deep/p.ts', "import '../../session/s.ts'", ['"provider" may not enter "session"']],
  ['provider/p.ts', "import '../main.ts'", ['"provider" may not enter "main.ts"']],
  ['provider/p.ts', "import '../../test/x.ts'", ['"../../test/x.ts" lies outside of src/']],
  ['provider/p.ts', 'import(name); require(name)', Array(2).fill('an import does not name its module')],
  ['provider/p.ts', 'import("../core/" + name)', ['an import does not name its module']],
  ['provider/p.ts', 'import(`../core/${name}`)', ['an import does not name its module']],
  ['provider/p.ts', "import fs from 'node:fs/promises'", ['"provider" may not use "node:fs"']],
  ['provider/p.ts', "import fs = require('fs')", ['"provider" may not use "fs"']],
  ['provider/p.ts', "import type { A } from '@scope/two/a'", ['"provider" may not use "@scope/two"']],
  [
    'core/c.ts',
    "import 'node:timers'; import 'undici'",
    ['"core" may not use "node:timers"', '"core" may not use "undici"'],
  ],
  ['attic/a.ts', '', ['"attic" has no row in src/README.md']],
  ['helpers.ts', '', ['only main.ts lies directly in src/']],
  ['session/s.ts', "import '../provider/p.ts'; import '../core/c.ts'; import './t.ts'; import 'node:fs/promises'", []],
  ['provider/p.ts', "import { Pool } from 'undici'; import 'undici/x'; import '@scope/one/y'", []],
  ['core/c.ts', "import { setTimeout } from 'node:timers/promises'", []],
  ['core/c.ts', "// import 'undici'\n/* import 'undici' */ const a = \"import 'undici'\" + `import 'undici'`", []],
  ['core/c.ts', "Array.from('undici'); x.import('undici'); const url = import.meta.url; f({ from: 'undici' })", []],
  ['core/c.ts', "const r = /import 'undici'/.test(a) ? `${`import('x')` + { a: '}' }.a}` : 1", []],
  ['main.ts', "import './session/s.ts'", []],
] as [string, string, string[]][])
  test(`a planted import is ${found.length > 0 ? 'found' : 'left alone'}: ${basename(file)}: ${source.replaceAll('\n', ' ')}`, () => {
    assert.deepEqual(
      violations(file, source, planted),
      found.map((what) => `${file}: ${what}`),
    )
  })
