import assert from 'node:assert/strict'
import { chmodSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { replaceText } from '../../src/cli/given-file.ts'
import { folderWith } from '../support/command-line.ts'

test('A file behind a link is replaced in one step, and keeps its permissions', (t) => {
  const folder = folderWith(t, { 'gateway.yaml': 'before' })
  const file = join(folder, 'gateway.yaml')
  chmodSync(file, 0o640)
  const link = join(folder, 'link.yaml')
  symlinkSync(file, link)
  const before = statSync(file).ino

  replaceText(link, 'after')

  assert.ok(lstatSync(link).isSymbolicLink())
  assert.equal(readFileSync(file, 'utf8'), 'after')
  assert.equal(statSync(file).mode & 0o777, 0o640)
  assert.notEqual(statSync(file).ino, before)
  assert.deepEqual(readdirSync(folder).toSorted(), ['gateway.yaml', 'link.yaml'])
})
