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
  [{ any_of: ['a', 'b'] }, 'b'],
  [{ any_of: ['a', 'b'] }, ['x', 'a']],
  [{ any_of: ['7'] }, 7],
  [{ any_of: ['true'] }, true],
  [{ any_of: ['false'] }, [false]],
  [{ all_of: ['a', 'b'] }, ['b', 'x', 'a']],
  [{ all_of: ['a'] }, 'a'],
  [{ none_of: ['a'] }, undefined],
  [{ none_of: ['a'] }, null],
  [{ none_of: ['a'] }, []],
  [{ none_of: ['a'] }, 'A'],
  [{ any_of: ['a'], none_of: ['b'] }, ['a', 'c']],
] as const)
  test(`${JSON.stringify(asked)} is met by ${JSON.stringify(groups)}`, () => {
    assert.equal(unmet(asked, groups), undefined)
  })

for (const [asked, groups] of [
  [{ any_of: ['a', 'b'] }, undefined],
  [{ any_of: ['a', 'b'] }, null],
  [{ any_of: ['a'] }, 'A'],
  [{ any_of: ['a'] }, ' a'],
  [{ any_of: ['a'] }, 'a,b'],
  [{ any_of: ['a'] }, 'ab'],
  [{ any_of: ['a'] }, { a: true }],
  [{ any_of: ['[object Object]'] }, {}],
  [{ any_of: ['a'] }, [['a']]],
  [{ any_of: ['a'] }, ['a', {}]],
  [{ any_of: ['1'] }, '1.0'],
  // oxlint-disable-next-line no-loss-of-precision -- that is what JSON.parse makes of it
  [{ any_of: ['9007199254740992'] }, 9007199254740993],
  [{ any_of: [] }, 'a'],
  [{ all_of: ['a', 'b'] }, ['a']],
  [{ all_of: ['a'] }, undefined],
  [{ all_of: [] }, undefined],
  [{ none_of: ['a'] }, 'a'],
  [{ none_of: ['a'] }, ['b', 'a']],
  [{ none_of: ['a'] }, { a: 1 }],
  [{ none_of: ['a'] }, ['b', null]],
  [{ any_of: ['a'], none_of: ['b'] }, ['a', 'b']],
  [{}, 'a'],
] as const)
  test(`${JSON.stringify(asked)} is not met by ${JSON.stringify(groups)}`, () => {
    assert.notEqual(unmet(asked, groups), undefined)
  })

test('the reason names the claim as it was written and what was asked, never what the person has', () => {
  const text = '"https://id.example.com/claims/fields".groups'
  const claims = { 'https://id.example.com/claims/fields': { groups: ['secret-project'] } }

  const why = unmetRequirement({ require: [requirement(text, { any_of: ['admins', 'ops'] })] }, claims)?.why

  assert.equal(why, `${text}: holds none of admins, ops`)
})

for (const absent of [undefined, null])
  for (const asked of [{ any_of: ['admins'] }, { all_of: ['admins'] }, { any_of: ['admins'], none_of: ['guests'] }])
    test(`of a claim that is ${absent}, ${JSON.stringify(asked)} says that it is absent`, () => {
      assert.equal(unmet(asked, absent), 'groups: the claim is absent')
    })

test('an empty list is not an absent claim', () => {
  assert.equal(unmet({ any_of: ['admins'] }, []), 'groups: holds none of admins')
})

test('all requirements of a rule have to be met', () => {
  const require = [requirement('groups', { any_of: ['a'] }), requirement('level', { any_of: ['3'] })]

  assert.equal(unmetRequirement({ require }, { groups: ['a'], level: 3 }), undefined)
  assert.match(unmetRequirement({ require }, { groups: ['a'], level: 2 })?.why ?? '', /^level: /)
  assert.equal(unmetRequirement({ require: [] }, {}), undefined)
})

test('only who holds the wanted text, as a claim of their own, gets in', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (groups) => {
      const holds = [groups].flat().includes('admins')
      if (unmet({ any_of: ['admins'] }, groups) === undefined) assert.ok(holds)
      if (unmet({ all_of: ['admins'] }, groups) === undefined) assert.ok(holds)
    }),
  )
  for (const inherited of ['constructor', '__proto__', 'toString', 'constructor.name', 'groups.length']) {
    const require = [requirement(inherited, { any_of: ['Object', 'Array', '1'] })]
    assert.notEqual(unmetRequirement({ require }, { groups: ['a'] }), undefined)
  }
})
