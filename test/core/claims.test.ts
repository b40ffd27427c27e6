import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type Claims,
  parseClaimPath,
  parseClaimTemplate,
  parseSelection,
  readClaim,
  selectValues,
} from '../../src/core/claims.ts'

for (const [text, path] of [
  ['sub', ['sub']],
  ['fields.costCentre', ['fields', 'costCentre']],
  ['groups[0]', ['groups', 0]],
  ['a[1][2].b', ['a', 1, 2, 'b']],
  ['"https://id.example.com/claims/fields".groups[0]', ['https://id.example.com/claims/fields', 'groups', 0]],
  ['a."b c".d', ['a', 'b c', 'd']],
  ['"say \\"hi\\" \\\\"', ['say "hi" \\']],
  ['0', ['0']],
  ['urn:x/y-z_é', ['urn:x/y-z_é']],
  ['https://localhost/groups', ['https://localhost/groups']],
  ['urn:zitadel:iam:org:project:roles.admin', ['urn:zitadel:iam:org:project:roles', 'admin']],
  ['fields.a/b', ['fields', 'a/b']],
] as const)
  test(`${text} is a claim path`, () => {
    assert.deepEqual(parseClaimPath(text), path)
  })

for (const [text, message] of [
  ['', /empty/],
  ['.a', /character 1 /],
  ['a.', /character 3 /],
  ['a..b', /character 3 /],
  ['a.[0]', /character 3 /],
  ['[0]', /character 1 /],
  ['a[0]b', /"\." or "\[" expected at character 5 /],
  ['a[x]', /character 2 /],
  ['a[12345]', /character 2 /],
  ['a[0', /character 2 /],
  ['"a', /character 1 /],
  ['""', /character 1 /],
  ['a b', /character 2 /],
  ['{a}', /character 1 /],
  ['$sub', /without "\$"/],
  ['https://id.example.com/groups', /in quotes of its own, '"https:\/\/id\.example\.com\/groups"'/],
  ['HTTP://id.example.com/fields.costCentre', /short name in provider\.claims/],
  ['urn:oid:1.3.6.1', /in quotes/],
] as const)
  test(`${JSON.stringify(text)} is not a valid claim path`, () => {
    assert.throws(() => parseClaimPath(text), { name: 'SyntaxError', message })
  })

test('A claim path reaches own members of objects and elements of lists only', () => {
  const claims = JSON.parse('{"a":{"b":[1,{"c":null}],"0":"x"},"s":"text","__proto__":{"own":true}}') as Claims
  const at = (text: string) => readClaim(claims, parseClaimPath(text))

  assert.equal(at('a.b[0]'), 1)
  assert.equal(at('a.b[1].c'), null)
  assert.equal(at('a.0'), 'x')
  assert.equal(at('__proto__.own'), true)
  for (const nowhere of [
    'b',
    'a.b[2]',
    'a.b.0',
    'a.b.length',
    'a[0]',
    's.length',
    's[0]',
    'a.b[1].c.d',
    'constructor',
    'toString',
  ])
    assert.equal(at(nowhere), undefined, nowhere)
  assert.equal(readClaim({}, ['__proto__']), undefined)
})

for (const [text, template] of [
  ['{given_name} {family_name}', [['given_name'], ' ', ['family_name']]],
  ['{ a.b[0] }!', [['a', 'b', 0], '!']],
  ['no claims', ['no claims']],
  ['{{x}} {y}', ['{x} ', ['y']]],
  ['{{{y}}}', ['{', ['y'], '}']],
  ['{"a}b".c}', [['a}b', 'c']]],
  ['', []],
] as const)
  test(`${JSON.stringify(text)} is a template`, () => {
    assert.deepEqual(parseClaimTemplate(text), template)
  })

for (const text of ['{', '{a', 'a}', '{}', '{a b}', '{"a}', '{a}}', '{{a}', '{{{a}}'])
  test(`${JSON.stringify(text)} is not a valid template`, () => {
    assert.throws(() => parseClaimTemplate(text), SyntaxError)
  })

test('A claim path of any quoted names reads back the same names', () => {
  const name = fc.string({ minLength: 1 }).filter((text) => !/[\n\r\u2028\u2029]/.test(text))
  fc.assert(
    fc.property(fc.array(name, { minLength: 1 }), (names) => {
      const text = names.map((part) => `"${part.replaceAll(/["\\]/g, '\\$&')}"`).join('.')
      assert.deepEqual(parseClaimPath(text), names)
      assert.deepEqual(parseClaimTemplate(`{${text}}`), [names])
    }),
  )
})

const emails = [
  { email: 'old@example.com', primary: true, verified: false, label: 'a,b=c' },
  { email: 'jane@example.com', primary: false, verified: true, level: 50 },
  { email: 'work@example.com', primary: false, verified: true, level: '50', label: null },
].map((email) => ({ level: 0, label: '', ...email }))

for (const [select, expected] of [
  ['[primary=true].email', ['old@example.com']],
  ['[primary=true,verified=true].email', []],
  ['[level=50].email', ['jane@example.com']],
  ['[level="50"].email', ['work@example.com']],
  ['["label"="a,b=c"].email', ['old@example.com']],
  ['[email=work@example.com].level', ['50']],
  ['[verified=true].email', undefined],
  ['[verified="true"].email', []],
  ['[unknown=true].email', undefined],
] as const)
  test(`${select} selects ${JSON.stringify(expected)} of a list`, () => {
    assert.deepEqual(selectValues(emails, parseSelection(select)), expected)
    assert.deepEqual(selectValues({ 'a=]': { list: emails } }, parseSelection(`"a=]".list${select}`)), expected)
  })

for (const [select, message] of [
  ['[primary=].email', /has no value after "="/],
  ['[primary=a b].email', /has no value after "="/],
  ['[=true].email', /claim's name expected/],
  ['[primary].email', /claim's name expected/],
  ['[primary=true,verified].email', /has no value after "="/],
  ['[primary=true]email', /"\." expected after "\]"/],
  ['[?(@.primary)].email', /is not supported/],
] as const)
  test(`${select} is no selection`, () => {
    assert.throws(() => parseSelection(select), { name: 'SyntaxError', message })
  })
