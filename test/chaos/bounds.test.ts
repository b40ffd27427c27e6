import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { bounds } from '../../chaos/bounds.ts'
import { root } from '../support/command.ts'

/** The rows of the table in docs/reliability.md: `| 2.5 s | what it is | \`name\` |`. */
function promised(): Map<string, number> {
  const page = readFileSync(join(root, 'docs', 'reliability.md'), 'utf8')
  const units = { ms: 1, s: 1_000, min: 60_000, '%': 0.01, MiB: 1024 ** 2, '': 1 }
  const rows = page.matchAll(/^\| *([\d.]+) ?(ms|s|min|%|MiB|) *\|[^|]*\| `([\w.]+)` *\|$/gm)
  return new Map(
    [...rows].map(([, value, unit = '', name = '']) => [name, Number(value) * units[unit as keyof typeof units]]),
  )
}

/** `recovery.store` and so on. */
function allowed(): [string, number][] {
  return Object.entries(bounds).flatMap(([name, value]) =>
    typeof value === 'number'
      ? [[name, value] as [string, number]]
      : Object.entries(value).map(([part, one]): [string, number] => [`${name}.${part}`, one]),
  )
}

test('docs/reliability.md promises each time and size that the checker allows', () => {
  assert.deepEqual([...promised()].toSorted(), allowed().toSorted())
})
