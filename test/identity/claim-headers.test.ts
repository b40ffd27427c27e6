import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { HeaderConfig, HeaderEncoding, HeaderSource } from '../../src/config/model/header.ts'
import { type Claims, parseClaimPath, parseClaimTemplate } from '../../src/core/claims.ts'
import { identityHeaders } from '../../src/identity/claim-headers.ts'
import { searchFor } from '../support/searches.ts'

const jane: Claims = {
  sub: 'u1',
  given_name: 'Jane',
  family_name: 'Dœ',
  age: 41,
  verified: false,
  nothing: null,
  blank: ' \t',
  groups: ['staff', 'ops'],
  fields: { costCentre: 'C-7', groups: ['a,admins', 'b', '', null, 3], deep: { x: ['ü'] } },
}

/** `{…}` is a template, anything else a claim path. */
function header(value: string, more: Partial<HeaderConfig> = {}): HeaderConfig {
  const source: HeaderSource = value.includes('{')
    ? { kind: 'template', template: parseClaimTemplate(value) }
    : { kind: 'claim', path: parseClaimPath(value) }
  return {
    name: 'X-H',
    source,
    join: ',',
    encode: 'utf8',
    maxBytes: 4096,
    tooLong: 'omit' as const,
    required: false,
    ...more,
  }
}

/** One dropped header. */
const xH = (why: string) => [{ name: 'X-H', why }]

/** The bytes of the header's value. */
function valueOf(value: string, more: Partial<HeaderConfig> = {}, claims: Claims = jane): string | undefined {
  const headers = identityHeaders([header(value, more)], claims)
  return 'fields' in headers ? headers.fields[1] : undefined
}

function decoded(bytes: string | undefined): string | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes, 'latin1').toString('utf8')
}

for (const [value, expected] of [
  ['sub', 'u1'],
  ['age', '41'],
  ['verified', 'false'],
  ['fields.costCentre', 'C-7'],
  ['groups', 'staff,ops'],
  ['groups[1]', 'ops'],
  ['fields.deep', '{"x":["ü"]}'],
  ['{given_name} {family_name}', 'Jane Dœ'],
  ['{given_name} {middle_name} {family_name}', 'Jane Dœ'],
  ['{title} {given_name} {suffix}', 'Jane'],
  ['{title} {suffix}  {given_name}', 'Jane'],
  ['<{sub}>', '<u1>'],
  ['{{{sub}}}', '{u1}'],
  ['n={nothing}; g={groups}', 'n=; g=staff,ops'],
] as const)
  test(`The header for ${value} is ${expected}`, () => {
    assert.equal(decoded(valueOf(value)), expected)
  })

for (const value of [
  'absent',
  'nothing',
  'blank',
  'fields.absent.x',
  '{absent}',
  'n={absent} {blank}',
  'constructor',
  'sub.length',
])
  test(`There is no header for ${value}; if it is required, the request is rejected`, () => {
    assert.deepEqual(identityHeaders([header('sub'), header(value)], jane), { fields: ['X-H', 'u1'], dropped: [] })
    assert.deepEqual(identityHeaders([header('sub'), header(value, { name: 'X-R', required: true })], jane), {
      missing: 'X-R',
      dropped: [],
    })
  })

test('An empty list counts as an absent claim', () => {
  assert.equal(valueOf('groups', {}, { groups: [] }), undefined)
  assert.equal(valueOf('groups', {}, { groups: ['', null] }), undefined)
})

for (const [encode, text, expected] of [
  ['utf8', 'Zoë €', Buffer.from('Zoë €').toString('latin1')],
  ['latin1', 'Zoë', 'Zo\xeb'],
  ['percent', "Zoë (it's)*!", 'Zo%C3%AB%20%28it%27s%29%2A%21'],
  ['percent', 'a\r\nb', 'a%0D%0Ab'],
  ['base64', 'Zoë', 'Wm/Dqw=='],
  ['rfc8187', '€ rates', "UTF-8''%E2%82%AC%20rates"],
  ['percent', 'admin\0', 'admin%00'],
  ['percent', ' admin', '%20admin'],
  ['utf8', 'Jane\u00a0Doe', Buffer.from('Jane\u00a0Doe').toString('latin1')],
] as const)
  test(`${JSON.stringify(text)} as ${encode} is ${JSON.stringify(expected)}`, () => {
    assert.equal(valueOf('name', { encode }, { name: text }), expected)
  })

const control = 'a control character, which a header cannot contain'
const edge = 'white space at its beginning or end, which recipients remove'
for (const [encode, text, why] of [
  ['utf8', 'a\r\nX-Admin: 1', control],
  ['utf8', 'admin\0', control],
  ['utf8', '\nadmin', control],
  ['utf8', 'ad\tmin', control],
  ['utf8', 'admin\x7f', control],
  ['utf8', 'admin\x85', control],
  ['utf8', 'admin\u2028', control],
  ['utf8', ' admin', edge],
  ['utf8', 'admin ', edge],
  ['utf8', 'admin\u00a0', edge],
  ['utf8', '\ufeffadmin', edge],
  ['utf8', '\0', control],
  ['latin1', 'admin\0', control],
  ['latin1', 'admin\xa0', edge],
  ['latin1', '李', 'a character that latin1 does not have'],
  ['latin1', 'Ċ', 'a character that latin1 does not have'],
  ['utf8', 'admin\ud800', 'text that is not well-formed Unicode'],
  ['percent', 'admin\udc00', 'text that is not well-formed Unicode'],
  ['base64', '\ud800admin', 'text that is not well-formed Unicode'],
  ['rfc8187', 'ad\ud800min', 'text that is not well-formed Unicode'],
] as const)
  test(`${JSON.stringify(text)} as ${encode} is left out and logged, never changed`, () => {
    const claims = { name: text, given_name: 'Jane' }
    assert.deepEqual(identityHeaders([header('name', { encode })], claims), { fields: [], dropped: xH(why) })
    assert.deepEqual(identityHeaders([header('name', { encode, required: true })], claims), {
      missing: 'X-H',
      dropped: xH(why),
    })
    const inTemplate = identityHeaders([header('{given_name}-{name}-', { encode })], claims)
    assert.deepEqual(inTemplate, why === edge ? { ...inTemplate, dropped: [] } : { fields: [], dropped: xH(why) })
    assert.deepEqual(identityHeaders([header('groups', { encode })], { groups: ['staff', text] }), {
      fields: ['X-H', valueOf('groups', { encode }, { groups: ['staff'] })],
      dropped: xH("1 of a list's members cannot be carried unchanged"),
    })
  })

test('A rounded integer is left out, because it may be the number of another person', () => {
  const rounded = JSON.parse(
    '{ "id": 9007199254740993, "ids": [1, 9007199254740993], "deep": { "id": 1e21 } }',
  ) as Claims
  const why = 'an integer beyond 2^53, which has lost digits'
  assert.deepEqual(identityHeaders([header('id')], rounded), { fields: [], dropped: xH(why) })
  assert.deepEqual(identityHeaders([header('deep')], rounded), { fields: [], dropped: xH(why) })
  for (const path of ['id', 'deep'])
    assert.deepEqual(identityHeaders([header(path, { json: true })], rounded), { fields: [], dropped: xH(why) })
  assert.deepEqual(identityHeaders([header('ids', { json: true })], rounded), {
    fields: ['X-H', '[1]'],
    dropped: xH(why),
  })
  assert.deepEqual(identityHeaders([header('ids')], rounded), {
    fields: ['X-H', '1'],
    dropped: xH("1 of a list's members cannot be carried unchanged"),
  })
})

test('Two different values never become the same header', () => {
  const encoding = fc.constantFrom<HeaderEncoding>('utf8', 'latin1', 'percent', 'base64', 'rfc8187')
  const near = fc.tuple(
    fc.constantFrom('', ' ', '\0', '\n', '\u00a0', '\ud800', 'İ', '?'),
    fc.constantFrom('admin', '李'),
  )
  const text = fc.oneof(
    anyText,
    near.map((parts) => parts.join('')),
    near.map(([one, other]) => other + one),
  )
  fc.assert(
    fc.property(text, text, encoding, (one, other, encode) => {
      const [a, b] = [one, other].map((name) => valueOf('name', { encode }, { name }))
      // Recipients see the value without the white space around it, and some decode before they
      // remove it.
      if (one !== other && a !== undefined) assert.notEqual(a.trim(), b?.trim())
    }),
    { numRuns: searchFor(3000) },
  )
})

test('The encoding applies to the whole text of a template', () => {
  const more = { given_name: 'Zoë', groups: ['a', 'b'] }
  assert.equal(valueOf('{given_name} {x} ({groups})', { encode: 'percent' }, more), 'Zo%C3%AB%20%28a,b%29')
  assert.equal(
    valueOf('{given_name}: {groups}', { encode: 'base64' }, more),
    Buffer.from('Zoë: a,b').toString('base64'),
  )
})

test('A group whose name contains the separator cannot become two groups', () => {
  const claims = { groups: ['a,admins', 'b'] }
  const byEncoding = (encode: HeaderEncoding, join = ',') =>
    identityHeaders([header('groups', { encode, join })], claims)

  const dropped = xH("1 of a list's members contain the separator, or begin or end with white space")
  assert.deepEqual(byEncoding('utf8'), { fields: ['X-H', 'b'], dropped })
  assert.deepEqual(byEncoding('latin1'), { fields: ['X-H', 'b'], dropped })
  assert.deepEqual(byEncoding('utf8', ', '), { fields: ['X-H', 'b'], dropped })
  assert.deepEqual(byEncoding('rfc8187'), { fields: ['X-H', "UTF-8''b"], dropped })
  assert.deepEqual(byEncoding('percent'), { fields: ['X-H', 'a%2Cadmins,b'], dropped: [] })
  assert.deepEqual(byEncoding('base64'), { fields: ['X-H', 'YSxhZG1pbnM=,Yg=='], dropped: [] })
  assert.deepEqual(byEncoding('utf8', ';'), { fields: ['X-H', 'a,admins;b'], dropped: [] })
})

test('A joined list can be split into the same members, whatever they contain', () => {
  const member = fc.oneof(
    fc.constantFrom('admins', '|', 'x|', '|x', ',admins', 'a b', '%2C', '\t', 'b\nadmins'),
    fc.string(),
  )
  const joined = fc.constantFrom(',', '|', '||', ', ', ' ', ';', 'x', '%')
  fc.assert(
    fc.property(
      fc.array(member),
      joined,
      fc.constantFrom<HeaderEncoding>('utf8', 'latin1', 'percent'),
      (groups, join, encode) => {
        const value = valueOf('groups', { join, encode, maxBytes: 1e6 }, { groups })
        for (const part of value?.split(join.trim() || join) ?? []) {
          const text = encode === 'percent' ? decodeURIComponent(part.trim()) : (decoded(part) ?? '').trim()
          assert.ok(
            groups.includes(text) || encode === 'latin1' || text === '',
            JSON.stringify({ groups, join, value, text }),
          )
          if (text === 'admins') assert.ok(groups.includes('admins'))
        }
      },
    ),
    { numRuns: searchFor(5000) },
  )
})

test('A value that is too long is left out, never shortened', () => {
  const long = { groups: ['staff', 'ops'], name: 'ü'.repeat(5) }

  assert.equal(valueOf('groups', { maxBytes: 9 }, long), 'staff,ops')
  assert.deepEqual(identityHeaders([header('groups', { maxBytes: 8 })], long), {
    fields: [],
    dropped: xH('longer than 8 bytes'),
  })
  assert.equal(valueOf('name', { maxBytes: 9 }, long), undefined)
  assert.equal(decoded(valueOf('name', { maxBytes: 10 }, long)), 'ü'.repeat(5))
  assert.deepEqual(identityHeaders([header('name', { maxBytes: 9, tooLong: 'omit' as const, required: true })], long), {
    missing: 'X-H',
    dropped: xH('longer than 9 bytes'),
  })
})

const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\r', '\n', '\0', '\x7f', '\u010a', '\ud800', ' '),
    fc.string({ unit: 'binary', maxLength: 1 }),
  ),
})

test('No claim, template or separator can inject a header field', () => {
  const encoding = fc.constantFrom<HeaderEncoding>('utf8', 'latin1', 'percent', 'base64', 'rfc8187')
  const claim = fc.oneof(anyText, fc.array(anyText), fc.dictionary(anyText, anyText), fc.jsonValue())
  fc.assert(
    fc.property(claim, encoding, anyText, fc.constantFrom('c', 'a {c} b'), (c, encode, join, value) => {
      const bytes = valueOf(value, { encode, join, maxBytes: 1e6 }, { c } as Claims)
      assert.match(bytes ?? 'x', /^[\x21-\x7e\x80-\xff]([\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/)
    }),
    { numRuns: searchFor(3000) },
  )
})

test('Decoding percent, base64 and rfc8187 returns the original text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (text) => {
      if (text.trim() === '') return
      assert.equal(decodeURIComponent(valueOf('c', { encode: 'percent' }, { c: text }) ?? ''), text)
      assert.equal(Buffer.from(valueOf('c', { encode: 'base64' }, { c: text }) ?? '', 'base64').toString(), text)
      const extended = valueOf('c', { encode: 'rfc8187' }, { c: text }) ?? ''
      assert.equal(decodeURIComponent(extended.slice("UTF-8''".length)), text)
    }),
  )
})
