import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { identityNames, isIdentityName, openPath, protocols, startLane } from '../corpus/lanes.ts'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { fuzz } from './fuzzing.ts'

/** No claim of any person contains this text. */
const forged = 'mallory'
const jane = 'jane'

const separator = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('-', '_') },
  fc.constantFrom(
    '.',
    '~',
    '|',
    '!',
    '#',
    '$',
    '%',
    '&',
    "'",
    '*',
    '+',
    '^',
    '`',
    '--',
    '__',
    '-_',
    '',
    ' ',
    '\t',
    '/',
    ':',
  ),
  fc.constantFrom('\u2010', '\u00ad', '\uff0d', '\u00a0', '\0', '\x7f'),
)
const letter = (character: string) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(character.toLowerCase(), character.toUpperCase()) },
    // In other alphabets, and with a long s and a dotless i, whose upper case is "S" and "I".
    fc.constantFrom(...lookalikes(character)),
  )

function lookalikes(character: string): readonly string[] {
  const fullWidth = String.fromCharCode(character.toUpperCase().charCodeAt(0) + 0xfee0)
  const hex = character.charCodeAt(0).toString(16)
  return [
    fullWidth,
    `%${hex}`,
    ...({ s: ['ſ', 'ѕ'], i: ['ı', 'İ'], e: ['е', 'é'], u: ['υ', 'ü'] }[character.toLowerCase()] ?? []),
  ]
}

/** An identity header's name as an attacker may spell it. */
const disguised = fc
  .constantFrom(...identityNames)
  .chain((name) =>
    fc
      .tuple(
        fc.constantFrom('', '', '', '-', '_', ' ', 'HTTP_', 'HTTP-', '\t', '"', '\0', '\ufeff', 'Connection: '),
        fc.tuple(...[...name].map((character) => (character === '-' ? separator : letter(character)))),
        fc.constantFrom('', '', '', '-', '_', ' ', '\t', '*', '%00', '\0', ',', ';', '\u00a0'),
      )
      .map(([before, characters, after]) => before + characters.join('') + after),
  )
const spelt = fc.oneof(disguised, fc.constantFrom(...identityNames))
const colon = fc.constantFrom(': ', ':', ' : ', ':\t', ':\0', ':\r\n ', ': ,', ': x\r\n\t', ':\x0b')
const value = fc.constantFrom(
  forged,
  `${forged},${jane}`,
  `${jane}, ${forged}`,
  `"${forged}"`,
  '',
  ` ${forged} `,
  `a\r${forged}`,
  `a\n${forged}`,
)
const lineEnd = fc.oneof({ weight: 9, arbitrary: fc.constant('\r\n') }, fc.constantFrom('\n', '\r', '\r\r\n', '\n\r\n'))

const line = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(spelt, colon, value, lineEnd).map((parts) => parts.join('')) },
  { weight: 2, arbitrary: spelt.map((name) => `Connection: close, ${name}\r\n`) },
  fc
    .tuple(fc.constantFrom('Keep-Alive', 'Proxy-Connection', 'Trailer', 'Vary', 'Forwarded'), spelt)
    .map((parts) => `${parts.join(': ')}\r\n`),
  fc.tuple(spelt, lineEnd).map(([name, end]) => `X-Foo: a${end}${name}: ${forged}\r\n`),
  fc.tuple(spelt).map(([name]) => `Cookie: ${name}=${forged}\r\n`),
)
const forgery = fc.record({
  lines: fc.array(line, { minLength: 1, maxLength: 5 }),
  /** Absent: a request without content. */
  trailers: fc.option(fc.array(line, { maxLength: 2 }), { nil: undefined }),
  signedIn: fc.boolean(),
  /** What the application speaks. */
  protocol: fc.constantFrom(...protocols),
  cookieFirst: fc.boolean(),
})

test('The application never receives a value of the client under the name of an identity header', async (t) => {
  const lanes = { 'HTTP/1.1': await startLane(t), 'HTTP/2': await startLane(t, { protocol: 'HTTP/2' }) }
  const forwarded = { 'HTTP/1.1': 0, 'HTTP/2': 0 }

  await fuzz(t, forgery, async ({ lines, trailers, signedIn, cookieFirst, protocol }) => {
    const { port, host, cookie, upstream } = lanes[protocol]
    const session = signedIn ? `Cookie: ${cookie}\r\n` : ''
    const content = trailers === undefined ? '' : `5\r\nhello\r\n0\r\n${trailers.join('')}\r\n`
    const head = [
      `${trailers === undefined ? 'GET' : 'POST'} ${openPath} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n`,
      ...(trailers === undefined ? [] : ['Transfer-Encoding: chunked\r\n']),
      ...(cookieFirst ? [session, ...lines] : [...lines, session]),
    ]
    upstream.forget()
    await exchangeRaw(port, Buffer.from(`${head.join('')}\r\n${content}`).toString('latin1'))

    for (const { headers, trailers, faults, isWhole } of upstream.seen) {
      assert.deepEqual(faults, [], 'an application could read it in another way')
      for (const [name, text] of [...headers, ...trailers.map((text) => text.split(/:(.*)/s, 2) as [string, string])])
        assert.ok(!(isIdentityName(name) && text.includes(forged)), `the application was told ${name}: ${text}`)
      const subjects = headers.filter(([name]) => isIdentityName(name) && /sub/i.test(name)).map(([, text]) => text)
      // With a forged Cookie line, the session cookie is in one of several lines, and is still
      // valid.
      assert.deepEqual(subjects, signedIn ? [jane] : [])
      if (isWhole) forwarded[protocol] += 1
    }
    assert.ok(upstream.seen.length <= 1, 'one request became several')
  })
  for (const protocol of protocols)
    assert.ok(forwarded[protocol] > 0, `nothing was forwarded over ${protocol}: nothing was shown`)
  t.diagnostic(`forwarded ${JSON.stringify(forwarded)}`)
})
