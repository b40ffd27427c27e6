import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Claims } from '../../src/core/claims.ts'
import { unmetRequirement } from '../../src/rules/requirement.ts'
import { requirement } from './configs.ts'

type Asked = Parameters<typeof requirement>[1]

function unmet(asked: Asked, groups: unknown): string | undefined {
  const claims = groups === undefined ? { sub: 'u1' } : { sub: 'u1', groups }
  return unmetRequirement({ require: [requirement('groups', asked)] }, claims as Claims)?.why
}

for (const [asked, groups] of [
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
  test(`${JSON.stringify(asked)} is met by ${JSON.stringify(groups)}`, () => {
    assert.equal(unmet(asked, groups), undefined)
  })

for (const [asked, groups] of [
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
  // oxlint-disable-next-line no-loss-of-precision -- that is what JSON.parse makes of it
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
  test(`${JSON.stringify(asked)} is not met by ${JSON.stringify(groups)}`, () => {
    assert.notEqual(unmet(asked, groups), undefined)
  })

test('the reason names the claim as it was written and what was asked, never what the person has', () => {
  const text = '"https://id.example.com/claims/fields".groups'
  const claims = { 'https://id.example.com/claims/fields': { groups: ['secret-project'] } }

  const why = unmetRequirement({ require: [requirement(text, { anyOf: ['admins', 'ops'] })] }, claims)?.why

  assert.equal(why, `${text}: holds none of admins, ops`)
})

for (const absent of [undefined, null])
  for (const asked of [{ anyOf: ['admins'] }, { allOf: ['admins'] }, { anyOf: ['admins'], noneOf: ['guests'] }])
    test(`of a claim that is ${absent}, ${JSON.stringify(asked)} says that it is absent`, () => {
      assert.equal(unmet(asked, absent), 'groups: the claim is absent')
    })

test('an empty list is not an absent claim', () => {
  assert.equal(unmet({ anyOf: ['admins'] }, []), 'groups: holds none of admins')
})

test('all requirements of a rule have to be met', () => {
  const require = [requirement('groups', { anyOf: ['a'] }), requirement('level', { anyOf: ['3'] })]

  assert.equal(unmetRequirement({ require }, { groups: ['a'], level: 3 }), undefined)
  assert.match(unmetRequirement({ require }, { groups: ['a'], level: 2 })?.why ?? '', /^level: /)
  assert.equal(unmetRequirement({ require: [] }, {}), undefined)
})

test('only who holds the wanted text, as a claim of their own, gets in', () => {
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
