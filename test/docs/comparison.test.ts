import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pages } from './markdown.ts'

test('Each row of the comparison names its sources, which are public documentation or source code', () => {
  const { text } = pages.find(({ path }) => path === 'docs/comparison.md')!
  const tables = [...text.matchAll(/^\| +\| Gatehouse [^]*?\n\n(?=(<!--\n[^]*?\n-->)?)/gm)]

  assert.ok(tables.length >= 6)
  for (const [table, sources = ''] of tables) {
    for (const row of table.trimEnd().split('\n').slice(2)) {
      const [, label = ''] = /^\| (.+?) +\|/.exec(row) ?? []
      assert.ok(sources.includes(`\n${label}: `), `no source for ${label}`)
    }
  }
  assert.doesNotMatch(text, /pkg\.go\.dev|npmjs|pypi|hub\.docker/)
})
