import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { RequirementConfig } from '../../../src/config/model/requirement.ts'
import { AddressSet } from '../../../src/core/addresses.ts'
import type { Claims } from '../../../src/core/claims.ts'
import { LinearPattern } from '../../../src/core/linear-pattern.ts'
import { TimeWindow } from '../../../src/core/time-window.ts'
import { requirementText, unmetRequirement } from '../../../src/gate/rules/requirement.ts'
import { requirement, subject } from './configs.ts'

type Requirements = Parameters<typeof requirement>[1]

function unmet(requirements: Requirements, groups: unknown): string | undefined {
  const claims = groups === undefined ? { sub: 'u1' } : { sub: 'u1', groups }
  return unmetRequirement({ require: [requirement('groups', requirements)] }, subject({ claims: claims as Claims }))
    ?.why
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
  [{ equals: 'a' }, 'a'],
  [{ equals: 'a' }, ['a']],
  [{ contains: 'min' }, ['x', 'admins']],
  [{ beginsWith: 'team-' }, 'team-blue'],
  [{ endsWith: '-admins' }, ['wiki-admins']],
  [{ matches: new LinearPattern('team-[a-z]+') }, ['x', 'team-blue']],
  [{ beginsWith: 'team-', endsWith: '-admins' }, ['team-a', 'b-admins']],
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
  [{ equals: 'a' }, ['a', 'b']],
  [{ equals: 'a' }, []],
  [{ equals: 'a' }, undefined],
  [{ contains: 'min' }, 'MIN'],
  [{ contains: 'min' }, { min: true }],
  [{ beginsWith: 'team-' }, ['a-team-']],
  [{ endsWith: '-admins' }, '-admins-of-nothing'],
  [{ matches: new LinearPattern('team-[a-z]+') }, 'my-team-blue'],
  [{ matches: new LinearPattern('.*') }, undefined],
] as const)
  test(`The requirement ${JSON.stringify(requirements)} is not satisfied by ${JSON.stringify(groups)}`, () => {
    assert.notEqual(unmet(requirements, groups), undefined)
  })

test('The reason names the claim and the required values, never the values of the person', () => {
  const text = '"https://id.example.com/claims/fields".groups'
  const claims = { 'https://id.example.com/claims/fields': { groups: ['secret-project'] } }

  const why = unmetRequirement({ require: [requirement(text, { anyOf: ['admins', 'ops'] })] }, subject({ claims }))?.why

  assert.equal(why, `${text}: holds none of admins, ops`)
})

for (const absent of [undefined, null])
  for (const requirements of [{ anyOf: ['admins'] }, { allOf: ['admins'] }, { anyOf: ['admins'], noneOf: ['guests'] }])
    test(`The reason of ${JSON.stringify(requirements)} says that a claim is absent when it is ${absent}`, () => {
      assert.equal(unmet(requirements, absent), 'groups: the claim is absent')
    })

test('The texts about a requirement show an empty value', () => {
  assert.equal(unmet({ equals: '' }, 'a'), 'groups: is not ""')
  assert.equal(requirementText(requirement('groups', { equals: '' })), 'groups has only ""')
  assert.equal(requirementText(requirement('groups', { anyOf: ['', 'a'] })), 'groups has any of "", a')
})

for (const access of [null, 'staff', 7, ['staff'], [{ roles: [] }]])
  test(`A path into ${JSON.stringify(access)} ${access === null ? 'is absent' : 'cannot be decided, so no negation is met'}`, () => {
    const noneOf = requirement('access.roles', { noneOf: ['suspended'] })
    const anyOf = requirement('access.roles', { anyOf: ['suspended'] })
    const at = (require: RequirementConfig) => unmetRequirement({ require: [require] }, subject({ claims: { access } }))

    const why = access === null ? undefined : 'access.roles: a part of this path is of another type'
    assert.equal(at(noneOf)?.why, why)
    assert.equal(at({ kind: 'not', not: anyOf })?.why, why)
    assert.equal(at(anyOf)?.why, why ?? 'access.roles: the claim is absent')
  })

test('An empty list is not an absent claim', () => {
  assert.equal(unmet({ anyOf: ['admins'] }, []), 'groups: holds none of admins')
})

test('All requirements of a rule must be satisfied', () => {
  const require = [requirement('groups', { anyOf: ['a'] }), requirement('level', { anyOf: ['3'] })]

  assert.equal(unmetRequirement({ require }, subject({ claims: { groups: ['a'], level: 3 } })), undefined)
  assert.match(unmetRequirement({ require }, subject({ claims: { groups: ['a'], level: 2 } }))?.why ?? '', /^level: /)
  assert.equal(unmetRequirement({ require: [] }, subject({})), undefined)
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
    assert.notEqual(unmetRequirement({ require }, subject({ claims: { groups: ['a'] } })), undefined)
  }
})

const [admins, external] = [
  requirement('groups', { anyOf: ['admins'] }),
  requirement('employment', { anyOf: ['external'] }),
]
const office: RequirementConfig = {
  kind: 'networks',
  networks: new AddressSet([
    { address: '10.0.0.0', prefix: 8, family: 'ipv4' },
    { address: 'fd00::', prefix: 8, family: 'ipv6' },
  ]),
  text: ['10.0.0.0/8', 'fd00::/8'],
}
const hours: RequirementConfig = {
  kind: 'time',
  time: new TimeWindow({ days: ['mon'], from: '08:00', to: '18:00', zone: 'UTC' }),
}
const reading: RequirementConfig = { kind: 'methods', methods: ['GET'] }
const staff: RequirementConfig = { kind: 'email_domains', emailDomains: ['example.com'], verified: true }
const not = (requirement: RequirementConfig): RequirementConfig => ({ kind: 'not', not: requirement })
const any = (...requirements: RequirementConfig[]): RequirementConfig => ({ kind: 'any', any: requirements })
const all = (...requirements: RequirementConfig[]): RequirementConfig => ({ kind: 'all', all: requirements })
const mail = (email: unknown, email_verified: unknown = true) =>
  ({ claims: { email, email_verified } }) as { readonly claims: Claims }

for (const [text, required, given] of [
  ['the network', office, { clientAddress: '10.200.3.4' }],
  ['the network, in IPv6', office, { clientAddress: 'fd00::7' }],
  ['another network', not(office), {}],
  ['the hours', hours, {}],
  ['other hours', not(hours), { now: Date.parse('2026-11-23T18:00:00Z') }],
  ['a method', reading, {}],
  ['HEAD as GET', reading, { method: 'HEAD' }],
  ['the domain', staff, mail('jane@example.com')],
  ['the domain in capital letters', staff, mail('Jane@EXAMPLE.com')],
  ['a domain that is verified, as text', staff, mail('jane@example.com', 'true')],
  ['another domain', not(staff), mail('jane@example.org')],
  ['an address that need not be verified', { ...staff, verified: false }, mail('jane@example.com', undefined)],
  ['one of two', any(admins, office), { claims: { groups: ['admins'] } }],
  ['the other of two', any(admins, office), { clientAddress: '10.0.0.1' }],
  ['one of two, the other of which is unknown', any(admins, reading), { claims: { groups: {} } }],
  ['both', all(admins, reading), { claims: { groups: 'admins' } }],
  ['not one of two', not(any(admins, external)), { claims: { groups: ['staff'] } }],
  ['not both', not(all(admins, external)), { claims: { groups: ['admins'], employment: 'internal' } }],
  ['not both, one of which is unknown', not(all(admins, external)), { claims: { groups: {}, employment: 'internal' } }],
  ['not an absent claim', not(external), {}],
  ['the method, negated twice', not(not(reading)), {}],
] as const)
  test(`A requirement is satisfied: ${text}`, () => {
    assert.equal(unmetRequirement({ require: [required as RequirementConfig] }, subject(given)), undefined)
  })

for (const [text, required, given, why] of [
  ['another network', office, {}, 'the client is not in 10.0.0.0/8, fd00::/8'],
  ['a client without an address', office, { clientAddress: 'unknown' }, 'the address of the client is unknown'],
  ['not of a network, without an address', not(office), { clientAddress: '' }, 'the address of the client is unknown'],
  ['the network', not(office), { clientAddress: '10.0.0.1' }, 'this must not be true: the client is in 10.0.0.0/8'],
  [
    'other hours',
    hours,
    { now: Date.parse('2026-11-24T09:00:00Z') },
    'the time is not within mon 08:00 to 18:00 (UTC)',
  ],
  ['another method', reading, { method: 'POST' }, 'the method is not GET'],
  ['another domain', staff, mail('jane@example.org'), 'email: the domain is none of example.com'],
  ['a domain below', staff, mail('jane@mail.example.com'), 'email: the domain is none of example.com'],
  ['a domain that ends alike', staff, mail('jane@badexample.com'), 'email: the domain is none of example.com'],
  ['two @', staff, mail('jane@example.org@example.com'), 'email: the claim is not one e-mail address'],
  ['two @ and a comment', staff, mail('"a@example.com"@example.org'), 'email: the claim is not one e-mail address'],
  ['two addresses', staff, mail('a@example.org, b@example.com'), 'email: the claim is not one e-mail address'],
  ['no local part', staff, mail('@example.com'), 'email: the claim is not one e-mail address'],
  ['a line break', staff, mail('jane@example.com\n'), 'email: the claim is not one e-mail address'],
  ['a list', staff, mail(['jane@example.com']), 'email: the claim is not one e-mail address'],
  ['no address', staff, {}, 'email: the claim is absent'],
  ['an address that is not verified', staff, mail('jane@example.com', false), 'email_verified: the provider has not'],
  [
    'an address that the provider says nothing about',
    staff,
    mail('jane@example.com', null),
    'email_verified: the provider has not verified',
  ],
  [
    'not of an address that is not verified',
    not(staff),
    mail('jane@example.com', false),
    'email_verified: the provider has not',
  ],
  ['not of a malformed claim', not(external), { claims: { employment: {} } }, 'employment: the claim is neither text'],
  [
    'neither',
    any(admins, office),
    { claims: { groups: [] } },
    'none of these is met: groups: holds none of admins; the',
  ],
  ['not one of two, which is unknown', not(any(admins, external)), { claims: { groups: {} } }, 'none of these is met'],
  ['one of both', all(admins, external), { claims: { groups: ['admins'] } }, 'employment: the claim is absent'],
  [
    'not both',
    not(all(reading, hours)),
    {},
    'this must not be true: (the method is GET and the time is within mon 08:00',
  ],
] as const)
  test(`A requirement is not satisfied: ${text}`, () => {
    const unmet = unmetRequirement({ require: [required] }, subject(given))
    assert.equal(unmet?.why.slice(0, why.length), why)
  })
