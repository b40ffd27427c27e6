import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalTarget } from '../../src/http/request-target.ts'
import { startLane } from '../corpus/lanes.ts'
import { pathReadings } from '../corpus/path-readings.ts'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { fuzz, fuzzMs } from './fuzzing.ts'

const names = ['open', 'admin', 'x', 'a.b', 'OPEN', 'Admin', 'openx', 'é', '%', '.gatehouse', '']
const dots = [
  '.',
  '..',
  '...',
  '. .',
  '.. ',
  ' ..',
  '..;',
  '..;x=y',
  '.;',
  '%2e',
  '%2e%2e',
  '.%2E',
  '%252e%252e',
  '．．',
]
const overlong = [
  '%c0%ae%c0%ae',
  '%e0%80%ae%e0%80%ae',
  '%f0%80%80%ae',
  '%c0%af',
  '%u002e%u002e',
  '%u2215',
  '%ef%bc%8e.',
]
const marks = [
  ...[
    '/',
    '//',
    '\\',
    '/./',
    '/../',
    ';',
    ';x=y',
    '%2f',
    '%2F',
    '%252f',
    '%5c',
    '%25%32%66',
    '%3b',
    '%3f',
    '%23',
    '%00',
    '%0a',
  ],
  ...['%20', '%09', '?', '#', '??', '&', '=', ':', '@', '*', ',', '+', '~', '%2e', '%2a'],
]

const segment = fc
  .oneof(
    { weight: 5, arbitrary: fc.constantFrom(...names) },
    { weight: 4, arbitrary: fc.constantFrom(...dots) },
    { weight: 1, arbitrary: fc.constantFrom(...overlong) },
  )
  .chain((text) => fc.oneof({ weight: 2, arbitrary: fc.constant(text) }, partlyEncoded(text)))

/** Encodes some of the characters, and some of them twice. */
function partlyEncoded(text: string): fc.Arbitrary<string> {
  const characters = [...Buffer.from(text).toString('latin1')]
  const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, '0')
  return fc.array(fc.nat({ max: 3 }), { minLength: characters.length, maxLength: characters.length }).map((times) =>
    characters
      .map((character, index) => {
        if (times[index] === 1) return `%${hex(character)}`
        if (times[index] === 2) return `%${hex(character).toUpperCase()}`
        return times[index] === 3 ? `%25${hex(character)}` : character
      })
      .join(''),
  )
}

const target = fc
  .tuple(
    fc.constantFrom(
      '/open',
      '/open/',
      '/',
      '//',
      '/open/..',
      'http://{host}/',
      'http://{host}/open/',
      '/admin/..',
      '/\\',
    ),
    fc.array(fc.tuple(segment, fc.oneof({ weight: 3, arbitrary: fc.constant('/') }, fc.constantFrom(...marks))), {
      maxLength: 5,
    }),
    segment,
    fc.constantFrom('', '', '?', '?x=/../admin', '?/open', '#', '#/admin'),
  )
  .map(([start, middle, last, end]) => start + middle.flat().join('') + last + end)

const closedUnlessListed = { rules: '{ path: /open/*, access: public }', mayPass: isBelow('/open') }
const openUnlessListed = {
  rules: '{ path: /admin/* }, { path: /*/x/* }, { path: /*, access: public }',
  mayPass: (path: string) => !isBelow('/admin')(path) && !/^\/[^/]*\/x(?:\/|$)/.test(path),
}

for (const [what, { rules, mayPass }] of Object.entries({ closedUnlessListed, openUnlessListed }))
  test(`The path that a rule admits is the path that is forwarded: ${what}`, async (t) => {
    const { port, host, upstream } = await startLane(t, { rules })
    let forwarded = 0

    await fuzz(
      t,
      target,
      async (written) => {
        const raw = Buffer.from(written.replaceAll('{host}', host)).toString('latin1').trimEnd()
        upstream.forget()
        await exchangeRaw(port, `GET ${raw} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)

        for (const seen of upstream.seen) {
          forwarded += 1
          const { path, query } = canonicalTarget(raw)
          assert.equal(seen.target, path + query, 'forwarded in another form than the one that was matched')
          assert.equal(canonicalTarget(seen.target).path, path, 'the same path, read again, is another one')
          for (const reading of pathReadings(seen.target, { foldsCase: false }))
            assert.ok(mayPass(reading), `${seen.target} can be read as ${reading}, for which nobody is let in`)
        }
      },
      fuzzMs / 2,
    )
    assert.ok(forwarded > 0, 'nothing was forwarded: nothing was shown')
    t.diagnostic(`forwarded ${forwarded}`)
  })

function isBelow(place: string): (path: string) => boolean {
  return (path) => path === place || path.startsWith(`${place}/`)
}
