import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { loadConfig, type LoadResult, loadText } from '../../src/config/load.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { isLongSearch, searchFor } from '../support/searches.ts'
import { environment, secretTexts } from './environment.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
after(() => rmSync(folder, { recursive: true }))

const full = readFileSync(new URL('cases/full.yaml', import.meta.url), 'utf8')

/** Loads a text as a file, which may change it. */
function loadFile(text: string): LoadResult {
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, text)
  return loadConfig(file, environment)
}

/** The diagnostics; none when the text is valid. */
function told(text: string, load = (text: string) => loadText(text, environment)): string {
  const loaded = load(text)
  return loaded.ok ? '' : formatDiagnostics(loaded.diagnostics)
}

function isTold(text: string): void {
  for (const secret of secretTexts) assert.ok(!text.includes(secret), 'a diagnostic shows a secret')
  assert.doesNotMatch(text, /undefined|\[object|must NOT|must match|instancePath/)
}

test('Loading a configuration never throws, whatever the text is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => isTold(told(text, loadFile))),
    { numRuns: searchFor(300) },
  )
})

const junk = [
  '',
  ' ',
  '\t',
  'null',
  '~',
  '[]',
  '{}',
  '- x',
  ': ',
  '"',
  "'",
  '*a',
  '&a',
  '!!js x',
  '<<: *a',
  '7',
  'yes',
  '{{',
  '|',
  '>',
  '#',
  '---',
  '%',
  '\u2028',
  'x: {y: [}',
]

test('Loading never throws after a small change of a full file', () => {
  const slip = fc.record({
    at: fc.nat({ max: full.length }),
    length: fc.oneof(fc.constant(0), fc.nat({ max: 40 })),
    text: fc.constantFrom(...junk),
  })
  fc.assert(
    fc.property(fc.array(slip, { minLength: 1, maxLength: 3 }), (slips) => {
      let text = full
      for (const { at, length, text: put } of slips) text = text.slice(0, at) + put + text.slice(at + length)
      isTold(told(text))
    }),
    { numRuns: searchFor(1000, 30) },
  )
})

test('An alias without a target is an error at each setting, and never throws', () => {
  const values = [...full.matchAll(/(?<=[:,{-] |\[ ?)[^\s,{}[\]*&|>#]+/g)]
  assert.ok(values.length > 250, String(values.length))
  // The short search tries every eighth one.
  for (const { index, 0: value } of isLongSearch ? values : values.filter((_, at) => at % 8 === 0)) {
    const diagnostics = told(`${full.slice(0, index)}*absent ${full.slice(index + value.length)}`)
    isTold(diagnostics)
    assert.notEqual(diagnostics, '')
  }
})

const kinds = [
  'null',
  '7',
  '-1',
  '1.5',
  'true',
  'text',
  '""',
  '[]',
  '{}',
  '[x]',
  '{ x: y }',
  '[null]',
  '[[]]',
  '{ constructor: 1, toString: 2 }',
  '2001-01-01',
  '.nan',
  '1e999',
]

/**
 * A value of another kind in the place of each value of the file, one at a time. The short search
 * tries one kind at every fifth place, in turn.
 */
test('Loading never throws for a value of a wrong type', () => {
  for (const [at, match] of [...full.matchAll(/(?<=[:,[] )[^\s,{}[\]][^\s,{}[\]]*/g)].entries())
    for (const [nth, put] of kinds.entries())
      if (isLongSearch || (at % 5 === 0 && (at / 5) % kinds.length === nth))
        isTold(told(full.slice(0, match.index) + put + full.slice(match.index + match[0].length)))
})
