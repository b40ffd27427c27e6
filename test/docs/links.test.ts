import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { anchorsOf, linksOf, pages, proseOf } from './markdown.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const anchors = new Map(pages.map((page) => [page.path, anchorsOf(page)]))

/** Returns why a link has no target. `undefined` means that the link is valid, or external. */
function fault(from: string, target: string): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? from : posix.normalize(posix.join(posix.dirname(from), decodeURIComponent(path)))
  if (file.startsWith('..') || !existsSync(join(root, file))) return 'there is no such file'
  if (anchor === undefined || !file.endsWith('.md')) return undefined
  return anchors.get(file)?.has(anchor) === true ? undefined : 'there is no such heading'
}

for (const page of pages)
  test(`The links of ${page.path} have targets`, () => {
    const faults = linksOf(page).flatMap((target) => {
      const why = fault(page.path, target)
      return why === undefined ? [] : [`${target}: ${why}`]
    })

    assert.deepEqual(faults, [])
  })

test('README.md leads to every page', () => {
  const reached = new Set<string>()
  const waiting = ['README.md']
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (reached.has(path)) continue
    reached.add(path)
    const page = pages.find((known) => known.path === path)
    if (page === undefined) continue
    for (const target of linksOf(page)) {
      const to = posix.normalize(posix.join(posix.dirname(path), target.split('#')[0] ?? ''))
      // A link to a folder leads to all of its pages.
      waiting.push(to, ...pages.filter((other) => posix.dirname(other.path) === to).map((other) => other.path))
    }
  }

  const lost = pages.map(({ path }) => path).filter((path) => path.startsWith('docs/') && !reached.has(path))
  assert.deepEqual(lost, [])
})

/** Reads a source and removes the backslashes before quotes: `\'` becomes `'`. */
function sourceOf(file: string): string {
  return readFileSync(join(root, file), 'utf8').replaceAll(/\\(['"`])/g, '$1')
}

test('Pages that a message or a comment of the program names exist', () => {
  const sources = ['src', 'packages'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  const named = sources
    .filter((path) => path.endsWith('.ts') && !path.includes('node_modules'))
    .flatMap((path) =>
      [...readFileSync(join(root, path), 'utf8').matchAll(/\bdocs\/[\w/-]+\.md\b/g)].map(([page]) => [path, page]),
    )

  assert.ok(named.length > 0)
  assert.deepEqual(
    named.filter(([, page = '']) => !existsSync(join(root, page))),
    [],
  )
})

test('Tests that a page names with their file exist', () => {
  const faults = pages.flatMap((page) =>
    [...proseOf(page).matchAll(/\[[^\]]*\.test\.ts\]\(([^)]+\.test\.ts)\): ((?:“[^”]+”(?:, )?)+)/g)].flatMap(
      ([, target = '', names = '']) => {
        const file = posix.join(dirname(page.path), target)
        const source = existsSync(join(root, file)) ? sourceOf(file) : ''
        return [...names.matchAll(/“([^”]+)”/g)]
          .filter(([, name = '']) => !source.includes(name))
          .map(([, name = '']) => `${page.path}: ${file} has no “${name}”`)
      },
    ),
  )

  assert.deepEqual(faults, [])
})

/**
 * The short form of a page. Example: `journeys/sessions`: one test; another one.
 */
const inShort = /`([a-z-]+(?:\/[\w-]+)+)`(?:[^:`|\n]*: ([^|`]+))?/g
const rooms = new Set(readdirSync(join(root, 'test')))

test('Tests that a page names in short exist', () => {
  const faults = pages.flatMap((page) =>
    [...proseOf(page).matchAll(inShort)].flatMap(([, name = '', tests = '']) => {
      if (!page.path.startsWith('docs/') || !rooms.has(name.split('/')[0] ?? '')) return []
      const file = [`test/${name}.test.ts`, `test/${name}.ts`].find((path) => existsSync(join(root, path)))
      if (file === undefined) return [`${page.path}: there is no test/${name}.test.ts`]
      return tests
        .split(';')
        .map((text) => text.trim())
        .filter((text) => !sourceOf(file).includes(text))
        .map((text) => `${page.path}: ${file} has no "${text}"`)
    }),
  )

  assert.deepEqual(faults, [])
})

test('The test finds a link without a target', () => {
  assert.equal(fault('docs/logout.md', 'nowhere.md'), 'there is no such file')
  assert.equal(fault('docs/logout.md', 'cli.md#nowhere'), 'there is no such heading')
  assert.equal(fault('docs/logout.md', '#nowhere'), 'there is no such heading')
  assert.equal(fault('docs/logout.md', '../../outside'), 'there is no such file')
  assert.equal(fault('docs/logout.md', 'cli.md#exit-codes'), undefined)
})

test('Files that CONTRIBUTING.md names exist', () => {
  const { text = '' } = pages.find(({ path }) => path === 'CONTRIBUTING.md') ?? {}
  const named = [...text.matchAll(/`((?:src|test|schemas|\.ci)\/[\w./-]*)\*?[\w.]*`/g)].map(([, path = '']) => path)

  assert.ok(named.length > 10)
  for (const path of named) {
    const [folder, name] = [posix.dirname(path), posix.basename(path)]
    const isThere =
      existsSync(join(root, path)) || readdirSync(join(root, folder)).some((file) => file.startsWith(name))
    assert.ok(isThere, path)
  }
})

test('Each decision is in the index of decisions', () => {
  const folder = 'docs/decisions/'
  const index = pages.find(({ path }) => path === `${folder}README.md`)
  assert.ok(index)
  const named = new Set(linksOf(index))
  const decisions = pages.map(({ path }) => path.slice(folder.length)).filter((name) => /^\d{4}-[^/]*\.md$/.test(name))

  assert.deepEqual(
    decisions.filter((name) => !named.has(name)),
    [],
  )
})

test('Files and folders of this repository that a page names exist', () => {
  const top = readdirSync(root).filter((name) => !/^(?:node_modules|\.git|dist.*|release|site)$/.test(name))
  const folders = top.filter((name) => statSync(join(root, name)).isDirectory())
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => `/${folder}/${path}`),
  )
  const isPath = new RegExp(`^(?:${folders.map((name) => name.replace('.', '\\.')).join('|')})/[\\w./-]+$`)
  const missing = pages
    .filter(({ path }) => path !== 'CHANGELOG.md')
    .flatMap((page) =>
      [...proseOf(page).matchAll(/`([\w./-]+)`/g)].flatMap(([, name = '']) => {
        if (isPath.test(name)) return existsSync(join(root, name)) ? [] : [`${page.path}: ${name}`]
        const isSource = /^[\w./-]+\.ts$/.test(name)
        return isSource && !files.some((file) => file.endsWith(`/${name}`)) ? [`${page.path}: ${name}`] : []
      }),
    )

  assert.deepEqual(missing, [])
})
