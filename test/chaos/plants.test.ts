import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { plantedFile, plants } from '../../chaos/plants.ts'
import { root } from '../support/command.ts'

for (const [name, { to }] of Object.entries(plants))
  test(`the fault ${name} fits the program as it is now`, () => {
    assert.ok(plantedFile(name, join(root, 'dist')).text.includes(to))
  })
