import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/command.ts'
import { type Page, pages } from './markdown.ts'

const page = pages.find(({ path }) => path === 'docs/conformance.md') as Page
const moduleNames = (text: string, quote: string) =>
  new Set(
    [...text.matchAll(new RegExp(`${quote}(oidcc-client-test[\\w-]*)(?<!-plan)${quote}`, 'g'))].map(([, name]) => name),
  )

const sections = page.text
  .split(/^### /m)
  .slice(1)
  .map((section) => section.split(/^## /m)[0] ?? '')

for (const section of sections)
  test(`docs/conformance.md lists the re-enacted modules: ${section.split('\n')[0]}`, () => {
    const files = [...section.matchAll(/\]\((\.\.\/test\/[^)]+)\)/g)].map(([, link = '']) => posix.join('docs', link))
    const sources = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n')

    assert.deepEqual(moduleNames(section, '`'), moduleNames(sources, "'"))
  })

test('docs/conformance.md has a section for each plan of its table', () => {
  assert.equal(sections.length, page.text.match(/^\| .*`oidcc-client-.*\| \d+ +\|$/gm)?.length)
})
