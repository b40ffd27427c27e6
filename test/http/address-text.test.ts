import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AddressStream, AddressText } from '../../src/http/address-text.ts'

const to = 'https://wiki.example.com'
const pair = (from: string, base = '', publicBase = '') => ({ from, to, base, publicBase })
const plain = new AddressText(
  [pair('http://10.0.0.7:3000'), pair('http://intranet'), pair('http://wiki.example.com')],
  'http:',
)
const based = new AddressText([pair('http://10.0.0.7:3000', '/app', '/wiki')], 'http:')

const inParts = (addresses: AddressText, parts: readonly string[]) => {
  const stream = new AddressStream(addresses)
  return parts.map((part) => stream.next(part)).join('') + stream.end()
}
const whole = (addresses: AddressText, text: string) => addresses.replace(text, 0, text.length).replaced

for (const [text, expected] of [
  ['<a href="http://10.0.0.7:3000/a?b#c">', `<a href="${to}/a?b#c">`],
  ['HTTP://10.0.0.7:3000', to],
  ['see http://intranet.', `see ${to}.`],
  ['http://intranet:80/a http://intranet/a', `${to}/a ${to}/a`],
  ['<img src="//10.0.0.7:3000/a.png">', '<img src="//wiki.example.com/a.png">'],
  ['url(//10.0.0.7:3000/a.png)', 'url(//wiki.example.com/a.png)'],
  ['{"u":"http:\\/\\/10.0.0.7:3000\\/a"}', '{"u":"https:\\/\\/wiki.example.com\\/a"}'],
  ['{"u":"http:\\u002f\\u002f10.0.0.7:3000\\u002fa"}', '{"u":"https:\\u002F\\u002Fwiki.example.com\\u002fa"}'],
  ['?to=http%3A%2F%2F10.0.0.7%3A3000%2Fa', '?to=https%3A%2F%2Fwiki.example.com%2Fa'],
  ['?to=%22http%3a%2f%2f10.0.0.7%3a3000', '?to=%22https%3A%2F%2Fwiki.example.com'],
  ['srcset="http://intranet/1x, http://intranet/2x 2x"', `srcset="${to}/1x, ${to}/2x 2x"`],
  ['http://wiki.example.com/', `${to}/`],
  ['http://intranet/@jane http://intranet?a@b', `${to}/@jane ${to}?a@b`],
  ['?to=http%3A%2F%2Fintranet%2F%40jane', '?to=https%3A%2F%2Fwiki.example.com%2F%40jane'],
] as const)
  test(`An address in content is replaced: ${text}`, () => assert.equal(whole(plain, text), expected))

for (const text of [
  'http://10.0.0.7:30001/',
  'http://10.0.0.7:3000.example.com/',
  'http://intranet.example.com/',
  'http://intranet-2/',
  'http://intranet:8080/',
  'https://intranet/',
  'xhttp://intranet/',
  'http://other//intranet/a',
  'https://wiki.example.com/',
  '// intranet',
  'http:/intranet',
  'http://10.0.0.7:3000@evil.example/',
  'http://intranet:secret@evil.example/',
  '{"u":"http:\\/\\/10.0.0.7:3000@evil.example\\/"}',
  '?to=http%3A%2F%2F10.0.0.7%3A3000%40evil.example%2F',
])
  test(`Another address in content stays as it is: ${text}`, () => assert.equal(whole(plain, text), text))

for (const [text, expected] of [
  ['"http://10.0.0.7:3000/app/a"', `"${to}/wiki/a"`],
  ['"http://10.0.0.7:3000/app"', `"${to}/wiki"`],
  ['"http:\\/\\/10.0.0.7:3000\\/app\\/a"', '"https:\\/\\/wiki.example.com\\/wiki\\/a"'],
  ['=http%3A%2F%2F10.0.0.7%3A3000%2Fapp%2Fa', '=https%3A%2F%2Fwiki.example.com%2Fwiki%2Fa'],
  ['"http://10.0.0.7:3000/application"', '"http://10.0.0.7:3000/application"'],
  ['"http://10.0.0.7:3000/other"', '"http://10.0.0.7:3000/other"'],
] as const)
  test(`The path of an address is translated, or the address stays: ${text}`, () =>
    assert.equal(whole(based, text), expected))

test('Addresses are counted, but not those that stay', () => {
  assert.equal(plain.count('http://intranet/a http://intranet.example.com //intranet "//intranet"'), 3)
  assert.equal(based.count('http://10.0.0.7:3000/other'), 0)
})

test('An address after an escape is replaced wherever the text is cut', () => {
  const text = `?to=%22http%3A%2F%2Fintranet%2Fa${'y'.repeat(2 * plain.maxLength)}`

  for (let cut = 1; cut < text.length; cut += 1)
    assert.equal(inParts(plain, [text.slice(0, cut), text.slice(cut)]), whole(plain, text), `cut at ${cut}`)
})

test('Text that arrives in parts is replaced like the whole text', () => {
  const piece = fc.constantFrom(
    ...[
      'http://',
      'https:',
      '10.0.0.7',
      ':3000',
      '/app',
      '//',
      'intranet',
      '\\/',
      '%2F',
      '%3A',
      '"',
      '.',
      '-',
      'x',
      ' ',
    ],
    ...['http://10.0.0.7:3000', 'http:\\/\\/intranet', '"//intranet', 'http%3A%2F%2Fintranet', 'y'.repeat(300)],
  )
  const parts = fc.array(
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
    { maxLength: 8 },
  )
  fc.assert(
    fc.property(parts, fc.constantFrom(plain, based), (written, addresses) => {
      assert.equal(inParts(addresses, written), whole(addresses, written.join('')))
    }),
    { numRuns: 300 },
  )
})
