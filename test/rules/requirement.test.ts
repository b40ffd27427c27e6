import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Claims } from '../../src/core/claims.ts'
import { unmetRequirement } from '../../src/rules/requirement.ts'
import { requirement } from './configs.ts'

type Requirements = Parameters<typeof requirement>[1]

function unmet(requirements: Requirements, groups: unknown): string | undefined {
  const claims = groups === undefined ? { sub: 'u1' } : { sub: 'u1', groups }
  return unmetRequirement({ require: [requirement('groups', requirements)] }, claims as Claims)?.why
}

for (const [requirements, groups] of [
  [{ anyOf: ['a', 'b'] }, 'b'],
  [{ anyOf: ['a', 'b'] }, ['x', 'a']],
  [{ anyOf: ['7'] }, 7],
  [{ anyOf: ['true'] }, true],
  [{ anyOf: ['false'] }, [false]],
  [{ allOf: ['a', 'b'] }, ['b', 'x', 'a']],
  [{ allOf: ['a'] }, 'a'],
  [{ noneOf: ['a'] }, undefined],
  [{ noneOf: ['a'] }, null],
  [{ noneOf: ['a'] }, []],
  [{ noneOf: ['a'] }, 'A'],
  [{ anyOf: ['a'], noneOf: ['b'] }, ['a', 'c']],
] as const)
  test(`The requirement ${JSON.stringify(requirements)} is satisfied by ${JSON.stringify(groups)}`, () => {
    assert.equal(unmet(requirements, groups), undefined)
  })

for (const [requirements, groups] of [
  [{ anyOf: ['a', 'b'] }, undefined],
  [{ anyOf: ['a', 'b'] }, null],
  [{ anyOf: ['a'] }, 'A'],
  [{ anyOf: ['a'] }, ' a'],
  [{ anyOf: ['a'] }, 'a,b'],
  [{ anyOf: ['a'] }, 'ab'],
  [{ anyOf: ['a'] }, { a: true }],
  [{ anyOf: ['[object Object]'] }, {}],
  [{ anyOf: ['a'] }, [['a']]],
  [{ anyOf: ['a'] }, ['a', {}]],
  [{ anyOf: ['1'] }, '1.0'],
  // oxlint-disable-next-line no-loss-of-precision -- JSON.parse rounds it in the same way
  [{ anyOf: ['9007199254740992'] }, 9007199254740993],
  [{ anyOf: [] }, 'a'],
  [{ allOf: ['a', 'b'] }, ['a']],
  [{ allOf: ['a'] }, undefined],
  [{ allOf: [] }, undefined],
  [{ noneOf: ['a'] }, 'a'],
  [{ noneOf: ['a'] }, ['b', 'a']],
  [{ noneOf: ['a'] }, { a: 1 }],
  [{ noneOf: ['a'] }, ['b', null]],
  [{ anyOf: ['a'], noneOf: ['b'] }, ['a', 'b']],
  [{}, 'a'],
] as const)
  test(`The requirement ${JSON.stringify(requirements)} is not satisfied by ${JSON.stringify(groups)}`, () => {
    assert.notEqual(unmet(requirements, groups), undefined)
  })

test('The reason names the claim and the required values, never the values of the person', () => {
  const text = '"https://id.example.com/claims/fields".groups'
  const claims = { 'https://id.example.com/claims/fields': { groups: ['secret-project'] } }

  const why = unmetRequirement({ require: [requirement(text, { anyOf: ['admins', 'ops'] })] }, claims)?.why

  assert.equal(why, `${text}: holds none of admins, ops`)
})

for (const absent of [undefined, null])
  for (const requirements of [{ anyOf: ['admins'] }, { allOf: ['admins'] }, { anyOf: ['admins'], noneOf: ['guests'] }])
    test(`The reason of ${JSON.stringify(requirements)} says that a claim is absent when it is ${absent}`, () => {
      assert.equal(unmet(requirements, absent), 'groups: the claim is absent')
    })

test('An empty list is not an absent claim', () => {
  assert.equal(unmet({ anyOf: ['admins'] }, []), 'groups: holds none of admins')
})

test('All requirements of a rule must be satisfied', () => {
  const require = [requirement('groups', { anyOf: ['a'] }), requirement('level', { anyOf: ['3'] })]

  assert.equal(unmetRequirement({ require }, { groups: ['a'], level: 3 }), undefined)
  assert.match(unmetRequirement({ require }, { groups: ['a'], level: 2 })?.why ?? '', /^level: /)
  assert.equal(unmetRequirement({ require: [] }, {}), undefined)
})

test('Only a person whose own claim has the required value gets access', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (groups) => {
      const holds = [groups].flat().includes('admins')
      if (unmet({ anyOf: ['admins'] }, groups) === undefined) assert.ok(holds)
      if (unmet({ allOf: ['admins'] }, groups) === undefined) assert.ok(holds)
    }),
  )
  for (const inherited of ['constructor', '__proto__', 'toString', 'constructor.name', 'groups.length']) {
    const require = [requirement(inherited, { anyOf: ['Object', 'Array', '1'] })]
    assert.notEqual(unmetRequirement({ require }, { groups: ['a'] }), undefined)
  }
})
