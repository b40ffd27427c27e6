import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { importsOf, isCode, skeletonOf } from './support/sources.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Path below the root → source. */
type Sources = ReadonlyMap<string, string>

/**
 * The names that a source exports, without types that it names again: they are part of what it says
 * about other exports.
 */
function exportsOf(source: string): string[] {
  const { skeleton } = skeletonOf(source)
  const declared = skeleton.matchAll(
    /(?<![\w$.])export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(function\*?|class|const|let|interface|type|enum)\s+([\w$]+)/g,
  )
  const listed = skeleton.matchAll(/(?<![\w$.])export\s+(?:type\s+)?\{([^}]*)\}/g)
  const isPartOfAnother = (kind: string, name: string) =>
    /^(?:interface|type)$/.test(kind) && skeleton.split(new RegExp(`(?<![\\w$.])${name}(?![\\w$])`)).length > 2
  return [
    ...[...declared].flatMap(([, kind = '', name = '']) => (isPartOfAnother(kind, name) ? [] : [name])),
    ...[...listed].flatMap(([, list]) => namesIn(list).map(({ there }) => there)),
  ]
}

/** The names of `{ type a, b as c }`: at home before `as`, and there after it. */
function namesIn(list = ''): { home: string; there: string }[] {
  const names = list.split(',').map((item) => item.trim().replace(/^type\s+/, ''))
  return names.filter(Boolean).map((item) => {
    const [home = '', there = home] = item.split(/\s+as\s+/)
    return { home, there }
  })
}

/**
 * `path#name` of each export that a source uses, and `path#*` where it may use all exports of a
 * module.
 */
function usesOf(file: string, source: string): string[] {
  const { skeleton, texts } = skeletonOf(source)
  const moduleOf = (index = '') => posix.join(posix.dirname(file), texts[Number(index)] ?? '')
  const lists = /(?<![\w$.])(?:import|export)\s+(?:type\s+)?(?:[\w$]+\s*,\s*)?\{([^}]*)\}\s*from\s*"(\d+)"/g
  const whole = /(?<![\w$.])(?:(?:import|export)\s+(?:type\s+)?\*[^"]*from\s*|import\s*\(\s*)"(\d+)"/g
  return [
    ...[...skeleton.matchAll(lists)].flatMap(([, list, index]) =>
      namesIn(list).map(({ home }) => `${moduleOf(index)}#${home}`),
    ),
    ...[...skeleton.matchAll(whole)].map(([, index]) => `${moduleOf(index)}#*`),
  ]
}

/** `path#name` of each export that no other source imports. */
function unusedExports(sources: Sources): string[] {
  const used = new Set([...sources].flatMap(([file, source]) => usesOf(file, source)))
  return [...sources].flatMap(([file, source]) =>
    used.has(`${file}#*`)
      ? []
      : exportsOf(source).flatMap((name) => (used.has(`${file}#${name}`) ? [] : [`${file}#${name}`])),
  )
}

/** The files to which no import leads from any of `entries`. */
function unusedFiles(sources: Sources, entries: readonly string[]): string[] {
  const reached = new Set<string>()
  const visit = (file: string): void => {
    if (reached.has(file)) return
    reached.add(file)
    for (const specifier of importsOf(sources.get(file) ?? ''))
      if (specifier?.startsWith('.')) visit(posix.join(posix.dirname(file), specifier))
  }
  for (const entry of entries) visit(entry)
  return [...sources.keys()].filter((file) => !reached.has(file))
}

const sources: Sources = new Map(
  ['src', 'packages', 'test', 'bench', 'chaos']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => posix.join(folder, path)),
    )
    .filter((path) => isCode(path) && !/node_modules|\.d\.m?ts$/.test(path))
    .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
)

test('each export is imported by another file', () => {
  assert.deepEqual(unusedExports(sources), [])
})

test('each source file is part of the program, a test or a benchmark', () => {
  const program = new Map([...sources].filter(([file]) => /^(?:src|packages)\//.test(file)))
  // Files that are started or imported by a name that is computed: each is named by what starts it.
  const byName =
    /^test\/(?:advisories|applications|conformance|keycloak|migrating|proxies|site|upgrade)\/|^test\/support\/without-|^test\/session\/file-writer|^chaos\/(?:main|replica-environment)|^bench\//
  const entries = [...sources.keys()].filter((file) => file.endsWith('.test.ts') || byName.test(file))

  // Pages contain the texts of these scripts.
  const scripts = ['notice', 'sign-in-for-frame', 'frame-sign-in'].map((name) => `src/pages/${name}.js`)
  const roots = ['src/main.ts', 'packages/admin-page/script.js', ...scripts]
  assert.deepEqual(unusedFiles(program, roots), [])
  assert.deepEqual(unusedFiles(sources, [...roots, ...entries]), [])
})

for (const [used, source] of [
  [true, "import { a } from './a.ts'"],
  [true, "import type { a as b } from './a.ts'"],
  [true, "import other, { c, type a } from './a.ts'"],
  [true, "export { a } from './a.ts'"],
  [true, "export * from './a.ts'"],
  [true, "import * as all from './a.ts'"],
  [true, "const { a } = await import('./a.ts')"],
  [true, "let x: import('./a.ts').a"],
  [false, "import { b as a } from './a.ts'"],
  [false, "import { a } from './b.ts'"],
  [false, "// import { a } from './a.ts'"],
] as const)
  test(`an export is ${used ? 'used' : 'unused'}: ${source}`, () => {
    const planted = new Map([
      ['src/a.ts', 'export const a = 1'],
      ['src/c.ts', source.replace(/^export \{ a \}/, 'export { a as default }')],
    ])

    assert.deepEqual(
      unusedExports(planted).filter((name) => name.startsWith('src/a.ts')),
      used ? [] : ['src/a.ts#a'],
    )
  })

for (const source of [
  'export async function a() {}',
  'export class a {}',
  'export abstract class a {}',
  'export interface a {}',
  'export type a = 1',
  'const b = 1\nexport { b as a }',
])
  test(`an export is seen: ${source.replaceAll('\n', ' ')}`, () => {
    assert.deepEqual(unusedExports(new Map([['a.ts', source]])), ['a.ts#a'])
  })
