import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { planFaults, shortestMinutes } from '../../chaos/plan.ts'
import { plantedFile, plants } from '../../chaos/plants.ts'
import { root } from '../support/command.ts'

for (const [name, { to, fault }] of Object.entries(plants))
  test(`the fault ${name} fits the program as it is now, and the shortest run has what it needs`, () => {
    assert.ok(plantedFile(name, join(root, 'dist')).text.includes(to))
    for (let seed = 1; fault !== undefined && seed <= 20; seed += 1)
      assert.equal(planFaults(seed, shortestMinutes * 60_000, fault)[0]?.kind, fault, `seed ${seed}`)
  })
