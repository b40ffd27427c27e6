import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pauses } from '../../src/core/pauses.ts'
import { bundledModules } from '../support/bundle.ts'
import { root } from '../support/command.ts'
import { builtPauses, replacePauses } from '../support/pauses.ts'
import { skeletonOf } from '../support/sources.ts'

const src = join(root, 'src')
const home = join('core', 'pauses.ts')
const sources = [src, join(root, 'packages')].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && path !== home)
    .map((path) => ({ path, source: readFileSync(join(folder, path), 'utf8') })),
)

/** Where a source does more with the pauses than to import them, and to read one by its name. */
function otherUses(source: string): string[] {
  const isWrite = /^\.\w+\s*(?:(?:[-+*/%&|^]|&&|\|\||\?\?|\*\*|<<|>>>?)?=(?![=>])|\+\+|--)/
  const { skeleton } = skeletonOf(source)
  const lists = /^(?:import|export) \{([^}]*)\} from "\d+"$/gm
  const code = skeleton.replaceAll(lists, (whole, names: string) => (/\bpauses as\b/.test(names) ? whole : ''))
  const uses = code.matchAll(/\bpauses\b(.*)/g)
  return [...uses].flatMap(([, rest = '']) => (/^\.\w/.test(rest) && !isWrite.test(rest) ? [] : [rest]))
}

test('Nothing that the program reads changes a pause', () => {
  const text = readFileSync(join(src, home), 'utf8')
  const members = /^export const pauses = \{\n([^]*)\n\} as const\n$/m.exec(text)?.[1] ?? ''
  const code = members.replaceAll(/ *\/\*\*[^]*?\*\/\n/g, '').split('\n')

  assert.equal(code.length, Object.keys(pauses).length)
  for (const line of code) assert.match(line, /^ {2}\w+: [\d_]+,$/)
  assert.doesNotMatch(text, /^import|process\.|globalThis/m)
  for (const { path, source } of sources) assert.deepEqual(otherUses(source), [], path)
  for (const use of ['.leaseMs = 1', '.leaseMs ||= 1', '.leaseMs++', '[name]', ')', ' as others } from'])
    assert.equal(otherUses(`pauses${use}`).length, 1, use)
})

test('The built program has the pauses of the source', () => {
  const [built, ...others] = bundledModules().flatMap(({ text }) => builtPauses.exec(text)?.[0] ?? [])

  assert.deepEqual(others, [])
  const values = [...(built ?? '').matchAll(/^ {2}(\w+): ([\de]+),?$/gm)].map(([, name, ms]) => [name, Number(ms)])
  assert.deepEqual(Object.fromEntries(values), pauses)
})

test('A test that has ended leaves no pause behind', async (t) => {
  const before = { ...pauses }

  await t.test('inside', (t) => {
    replacePauses(t, { leaseMs: 1 })
    replacePauses(t, { examineMs: 2 })
    assert.deepEqual([pauses.leaseMs, pauses.examineMs], [1, 2])
  })

  assert.deepEqual(pauses, before)
})
