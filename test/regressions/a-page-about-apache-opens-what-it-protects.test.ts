import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blocksOf, pages } from '../docs/markdown.ts'

/** The sections that a later section of the same block overrides completely. */
function overridden(configuration: string): string[] {
  const paths = [...configuration.matchAll(/^<Location "?(\/[^">]*)"?>$/gm)].map(([, path = '']) => path)
  return paths.filter((path, index) => paths.slice(index + 1).some((later) => `${path}/`.startsWith(later)))
}

// In Apache, the last section that matches a path decides, and not the longest path.
for (const page of pages)
  for (const { line, text } of blocksOf(page).filter(({ language }) => language === 'apache'))
    test(`No later section of Apache removes a requirement: ${page.path}, line ${line}`, () => {
      assert.deepEqual(overridden(text), [])
    })

test('The test finds a section that has no effect', () => {
  assert.deepEqual(overridden('<Location /admin>\n</Location>\n<Location />\n</Location>\n'), ['/admin'])
})
