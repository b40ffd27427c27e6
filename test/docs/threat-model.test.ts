import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/command.ts'

const read = (path: string) => readFileSync(join(root, path), 'utf8')

// links.test.ts checks that the named tests exist.
test('Each promise of SECURITY.md has its section in the threat model, with a test by name', () => {
  const [promises = ''] = /^### What is promised$[^]*?^(?=###)/m.exec(read('SECURITY.md')) ?? []
  const names = [...promises.matchAll(/^- (?:\*\*([^*]+):\*\*)?/gm)].map(([, name]) => name)
  const sections = read('docs/threat-model.md').split(/^### /m).slice(1)

  assert.ok(names.length > 5)
  assert.deepEqual(
    sections.map((section) => section.split('\n')[0]),
    names,
  )
  for (const section of sections) assert.match(section, /\.test\.ts\): “[^”]+”/)
})
