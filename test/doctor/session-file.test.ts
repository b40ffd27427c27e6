import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sessionFileFindings } from '../../packages/doctor/session-file.ts'
import { folderWith } from '../support/command-line.ts'
import { assertUseful } from './support.ts'

test('A folder as session file gets the advice to name a file, not to change permissions', (t) => {
  const folder = folderWith(t, {})

  const [finding, ...others] = sessionFileFindings(folder)

  assert.ok(finding)
  assertUseful([finding])
  assert.deepEqual([finding.level, others], ['fault', []])
  assert.match(finding.what, /is a folder$/)
  assert.match(finding.todo ?? '', /name a file in session\.store\.file/)
})
