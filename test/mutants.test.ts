// How `npm run test:mutants` changes sources (.ci/mutants/mutate.mjs), and runs the tests.
import assert from 'node:assert/strict'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { mutantsOf, withMutants } from '../.ci/mutants/mutate.mjs'
import { runTests } from '../.ci/mutants/run.mjs'
import { folderWith } from './support/command-line.ts'

/** What a source exports, while one of its mutants is active. */
async function run(text: string, active: number): Promise<Readonly<Record<string, unknown>>> {
  const module = `const isMutant = (number) => number === ${active};${stripTypeScriptTypes(text)}`
  return (await import(`data:text/javascript,${encodeURIComponent(module)}`)) as Readonly<Record<string, unknown>>
}

/** For each mutant of a source: what changes, and the exported `result` with it. */
async function resultsOf(source: string): Promise<Readonly<Record<string, unknown>>> {
  const mutants = (await mutantsOf(source)).map((mutant, number) => ({ ...mutant, number }))
  const text = await withMutants(source, mutants)
  const results: Record<string, unknown> = { unchanged: (await run(text, -1))['result'] }
  for (const { number, start, end, replacement } of mutants)
    results[`${source.slice(start, end)} → ${replacement}`] = (await run(text, number))['result']
  return results
}

test('Each mutant changes one place, and without one the source does what it did', async () => {
  assert.deepEqual(await resultsOf('const [a, b] = [4, 5]\nexport const result = a < b && a - b'), {
    unchanged: -1,
    '4 → 4 * 2': false,
    '5 → 5 * 2': -6,
    'a < b && a - b → (a < b) || (a - b)': true,
    'a < b && a - b → a - b': -1,
    'a < b && a - b → a < b': true,
    'a < b → (a) <= (b)': -1,
    'a - b → (a) + (b)': 9,
  })
})

test('A condition is true, false or the other way, also within another one', async () => {
  assert.deepEqual(await resultsOf(`const a = 'a'\nexport const result = !(a === 'a') ? 'x' : a ?? 'y'`), {
    unchanged: 'a',
    "!(a === 'a') → true": 'x',
    "!(a === 'a') → false": 'a',
    "!(a === 'a') → a === 'a'": 'x',
    "a === 'a' → (a) !== ('a')": 'x',
    "a ?? 'y' → a": 'a',
  })
})

test('A call whose result is not used is left out, and a promise is not awaited', async () => {
  const source = 'export const result: string[] = []\nconst add = async () => result.push("x")\nawait add()\nadd()'

  assert.deepEqual(await resultsOf(source), {
    unchanged: ['x', 'x'],
    'await add() → add()': ['x', 'x'],
    'await add() → undefined': ['x'],
    'add() → undefined': ['x'],
  })
})

test('Types, names of properties and lines of the debug log have no mutants', async () => {
  const source = `const log = { debug: (_: string) => {} }
    export const result: { readonly 1: true | 'a' }[] = []
    const members = { 7: result } as const
    log.debug(1 < 2 ? 'a' : 'b')
    export default members`

  assert.deepEqual(await mutantsOf(source), [])
})

test('Texts in lists are left out one by one', async () => {
  assert.deepEqual(await resultsOf(`export const result = ['a', 'b'].map((each) => each + 'c')`), {
    unchanged: ['ac', 'bc'],
    "'a' → ''": ['c', 'bc'],
    "'b' → ''": ['ac', 'c'],
  })
})

test('The end of tests that fail does not end the tests that run next', async (t) => {
  const cwd = folderWith(t, {
    'fails.mjs': `process.stdout.write('not ok 1\\n'); setInterval(() => {}, 1_000)`,
    'hangs.mjs': 'setInterval(() => {}, 1_000)',
    'passes.mjs': 'setTimeout(() => {}, 300)',
  })
  const isFailed = async (name: string, limitMs = 120_000) =>
    (await runTests(join(cwd, name), { cwd, env: {}, limitMs })).isFailed

  assert.equal(await isFailed('fails.mjs'), true)
  assert.equal(await isFailed('passes.mjs'), false)
  assert.equal(await isFailed('hangs.mjs', 1), true)
  assert.equal(await isFailed('passes.mjs'), false)
})
