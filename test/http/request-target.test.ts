import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parsePathPattern } from '../../src/core/patterns.ts'
import { createRouteTable, type Route, type RouteTable } from '../../src/gate/rules/route-table.ts'
import { canonicalTarget } from '../../src/http/request-target.ts'
import { rule, upstream } from '../gate/rules/configs.ts'
import { processorTime } from '../support/processor-time.ts'
import { searchFor } from '../support/searches.ts'
import { everyReading, hostile } from './readings.ts'

for (const [raw, path, segments, query] of [
  ['/', '/', [''], ''],
  ['/a/b', '/a/b', ['a', 'b'], ''],
  ['/a/b/', '/a/b/', ['a', 'b', ''], ''],
  ['/a?', '/a', ['a'], '?'],
  ['/a?b=/../c;d&e=%2f\\"', '/a', ['a'], '?b=/../c;d&e=%2f\\"'],
  ['/?x', '/', [''], '?x'],
  ['/%7Ejane/%61%2Db', '/~jane/a-b', ['~jane', 'a-b'], ''],
  ['/caf%c3%A9', '/caf%c3%A9', ['caf%c3%A9'], ''],
  ['//a///b//', '/a/b/', ['a', 'b', ''], ''],
  ['/a/./b/../c', '/a/c', ['a', 'c'], ''],
  ['/a/%2e/b/%2E%2e/c', '/a/c', ['a', 'c'], ''],
  ['/a/..', '/', [''], ''],
  ['/a/b/.', '/a/b/', ['a', 'b', ''], ''],
  ['/a/b/..', '/a/', ['a', ''], ''],
  ['/.well-known/x', '/.well-known/x', ['.well-known', 'x'], ''],
  ['/a..b/c...d', '/a..b/c...d', ['a..b', 'c...d'], ''],
  ['/"<>^`{|}[]', '/"<>^`{|}[]', ['"<>^`{|}[]'], ''],
] as const) {
  test(`The path ${raw} is normalized to ${path}`, () => {
    const target = canonicalTarget(raw)

    assert.deepEqual([target.path, target.segments, target.query], [path, segments, query])
  })
}

for (const [why, raws] of [
  [/neither a path/, ['', '*', 'a', 'host:443', 'ftp://host/', 'http:/host/', '?x']],
  [/a control character, a space/, ['/a b', '/a\tb', '/a\0', '/é', '/a#b', '/a?b#', '/a?b c', '/a?é', '/a\x7f']],
  [/authority/, ['http:///a', 'http://u@h/', 'http://h:x/', 'http://[::1/', 'http://h\\x/']],
  [/backslash/, ['/a\\b', '/\\a', '/public/..\\admin']],
  [/invalid percent-encoding/, ['/%', '/a%2', '/%zz', '/%%361', '/a/%u002e']],
  [/above the root/, ['/..', '/../a', '/a/../..', '/%2e%2e/a', '/a/%2E./../b', '//../a']],
  [/encoded backslash/, ['/a%5cb', '/a%255Cb', '/a%2f%5cb', '/a%ef%bc%bcb', '/a%ef%b9%a8b']],
  [
    /dot segment/,
    ['/a%2f..', '/a%2F.%2fb', '/..%2fa', '/a%252f%252e%252e%252fb', '/a/%2f..;x%2fb', '/a%2f..%3bx', '/a%2f.%20/b'],
  ],
  [/control character/, ['/a%00', '/a%0d%0ab', '/a%2500', '/%7f', '/%09/', '/a%250a/b']],
  [
    /dot segment/,
    ['/a/..;/b', '/a/..;x=1/b', '/.;/b', '/a/..%20/b', '/a/%20../b', '/a/..%3b/b', '/a/..%253bx/b', '/a/..%3fx/b'],
  ],
  [
    /dot segment/,
    ['/a/%252e%252e/b', '/a/%252e/b', '/a/%25252e./b', '/a/.../b', '/a/..%23', '/a/..%a0/b', '/%25u002e/'],
  ],
  [/dot segment/, ['/a/%ef%bc%8e%ef%bc%8e/b', '/a/..%c2%a0/b', '/a/x%ef%bc%8f..%ef%bc%8fb']],
  [/overlong/, ['/%c0%ae%c0%ae/a', '/a%c0%afb', '/%e0%80%ae', '/%f0%80%80%ae', '/%25c0%25ae']],
  [/too many times/, ['/%2525252561']],
] as const)
  for (const raw of raws) {
    test(`${JSON.stringify(raw)} is rejected: ${why.source}`, () => {
      assert.throws(() => canonicalTarget(raw), { code: 'ERR_REQUEST_TARGET', message: why })
    })
  }

test('An error message never quotes the target, because its query may contain a code', () => {
  assert.throws(
    () => canonicalTarget('/a b?code=hush'),
    (error: Error) => !error.message.includes('hush'),
  )
})

test('An absolute-form target names the authority that replaces Host', () => {
  const target = canonicalTarget('HTTP://Orders.example.com:8080/a//b?c')

  assert.equal(target.authority, 'Orders.example.com:8080')
  assert.deepEqual([target.path, target.query], ['/a/b', '?c'])
  assert.equal(canonicalTarget('http://h?x').path, '/')
  assert.equal('authority' in canonicalTarget('/a'), false)
})

for (const [raw, readings] of [
  ['/app/page;jsessionid=1', ['app/page']],
  ['/;x/admin', ['admin']],
  ['/%2561dmin', ['%61dmin', 'admin']],
  ['/admin./x', ['admin/x']],
  ['/admin%20/x', ['admin /x', 'admin/x']],
  ['/a%3fb/c', ['a?b/c', 'a']],
  ['/a%3bb', ['a;b', 'a']],
  ['/group%2Fproject', ['group/project', 'group/project']],
  ['/a%2f%2fb', ['a//b', 'a/b']],
  ['/%2f', ['/', '']],
  ['/a%252Fb', ['a%2Fb', 'a/b', 'a/b']],
  ['/a%3bx%2fb', ['a;x/b', 'a;x/b', 'a', 'a/b']],
  ['/a%ef%bc%8fb', ['a\xef\xbc\x8fb', 'a/b', 'a/b']],
  ['/a%ef%bc%9bb', ['a\xef\xbc\x9bb', 'a;b', 'a']],
  ['/a%ef%bc%9fb', ['a\xef\xbc\x9fb', 'a?b', 'a']],
  ['/%3b%3f/b%23', [';?/b#', ';', ';?/b', 'b#', 'b', '']],
] as const) {
  test(`${raw} is forwarded unchanged, and an application may read it as ${readings.join(' or ')}`, () => {
    const target = canonicalTarget(raw)

    assert.equal(target.path, raw)
    assert.deepEqual(target.otherReadings?.map((segments) => segments.join('/')).sort(), [...readings].sort())
  })
}

// The tests below do not check how the gateway reads a target. They check what happens at an
// application that reads it differently.

const openOnly = createRouteTable([upstream({ rules: [rule('/public/*', { access: 'public' })] })])

function accepted(raw: string, table: RouteTable): { path: string; route: Route | undefined } | undefined {
  try {
    const target = canonicalTarget(raw)
    return { path: target.path, route: table.route('any', 'GET', target) }
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'ERR_REQUEST_TARGET')
    return undefined
  }
}

test('However an application reads an accepted path, the rule of that reading is not stricter than the matched rule', () => {
  let throughOpen = 0
  fc.assert(
    fc.property(hostile, (raw) => {
      const through = accepted(raw, openOnly)
      if (through === undefined) return
      if (through.route?.rule.access === 'public') throughOpen += 1
      for (const segments of everyReading(through.path)) {
        const meant = openOnly.route('any', 'GET', { segments })
        assert.equal(meant?.rule.access, through.route?.rule.access, `${through.path} → /${segments.join('/')}`)
      }
    }),
    { numRuns: searchFor(20_000) },
  )
  assert.ok(throughOpen > searchFor(200), `only ${throughOpen} of the cases were let through`)
})

test('The same holds for any rules, prefixes and logout links', () => {
  const name = fc.constantFrom('public', 'admin', 'a', 'b', '*')
  const pattern = fc
    .tuple(fc.array(name, { maxLength: 3 }), fc.constantFrom('', '/', '/*'))
    .map(([names, end]) => names.map((segment) => `/${segment}`).join('') + end || '/')
  const tables = fc
    .tuple(fc.array(pattern, { maxLength: 4 }), fc.constantFrom('/', '/public/', '/a/'))
    .map(([patterns, path]) => {
      const rules = patterns.map((text, index) => rule(text, { anyOf: [`group ${index}`] }))
      const logout = [parsePathPattern('/admin/b')]
      return createRouteTable([upstream({ name: 'one', path, rules, logout }), upstream({ name: 'two', path: '/b/' })])
    })
  fc.assert(
    fc.property(hostile, tables, (raw, table) => {
      const through = accepted(raw, table)
      if (through === undefined) return
      for (const segments of everyReading(through.path)) {
        const meant = table.route('any', 'GET', { segments })
        const why: string = `${through.path} → /${segments.join('/')}`
        assert.equal(meant?.upstream.name, through.route?.upstream.name, why)
        assert.equal(meant?.rule.path.text, through.route?.rule.path.text, why)
        if (meant?.isLogout) assert.equal(through.route?.isLogout, true, why)
      }
    }),
    { numRuns: searchFor(20_000) },
  )
})

test('Normalizing a canonical path again changes nothing', () => {
  fc.assert(
    fc.property(hostile, (raw) => {
      const once = accepted(raw, openOnly)
      if (once !== undefined) assert.equal(canonicalTarget(once.path).path, once.path)
    }),
    { numRuns: searchFor(5000) },
  )
})

test('Any text is read or rejected, and quickly', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      accepted(text, openOnly)
      accepted(`/${text}`, openOnly)
    }),
  )
  for (const piece of ['.', '%2e', '%20', '%25', ';', '/', '/.', '../', '%3f', 'a;', '%c0', 'a.%20/', '"']) {
    const busy = processorTime()
    accepted(`/${piece.repeat(64_000 / piece.length)}b`, openOnly)
    assert.ok(busy() < 500, `${piece} takes ${busy()} ms`)
  }
})

test('A long path with unusual characters is rejected; a long plain path and a long query are accepted', () => {
  const long = (piece: string) => `/${piece.repeat(9_000 / piece.length)}`

  for (const piece of ['%2541/', ';/', '%2525253f;%e4b;./'])
    assert.throws(() => canonicalTarget(long(piece)), {
      code: 'ERR_REQUEST_TARGET',
      message: /long and contains unusual characters/,
    })
  for (const piece of [';/', '%d0%b0/', '%2f', '%252f'])
    assert.throws(() => canonicalTarget(`/${piece.repeat(101)}`), { message: /too many segments/ })
  for (const piece of ['%d0%b0', '%20'])
    assert.equal(canonicalTarget(`/${piece.repeat(600)}x`).path, `/${piece.repeat(600)}x`)
  assert.equal(canonicalTarget(`/${'%d0%b0/'.repeat(99)}`).segments.length, 100)
  assert.equal(canonicalTarget(long('a/')).path, long('a/'))
  assert.equal(canonicalTarget(`/a;b?q=${'%20'.repeat(5_000)}`).path, '/a;b')
})

for (const raw of [
  ...['/admin', '/%61dmin', '/%2561dmin', '///admin', '/admin;x=y', '/;/admin', '/admin%20', '/admin?x=/public/'],
  ...['/admin%3f/public', '/public/../admin', '/public//../admin', '/public/....//admin', '/public/.../admin'],
  ...[
    '/public/..;/admin',
    '/public/%2e%2e/admin',
    '/public/..%252fadmin',
    '/public%2f%2e%2e%2fadmin',
    '/Public/../admin',
  ],
  ...['/x/callback;/../../admin', '/public/http:%2f%2fx/../../admin', '/%%361dmin', '/admin/%', '/public%3b/../admin'],
]) {
  test(`A rule for a public path never matches ${raw}`, () => {
    assert.notEqual(accepted(raw, openOnly)?.route?.rule.access, 'public')
  })
}

for (const [raw, reading] of [
  ['/a%2F', ['a', '']],
  ['/a%2Fb', ['a', 'b']],
  ['/%2561dmin', ['admin']],
  // Segments that are encoded more or less often, for an application that decodes all of them.
  ['/%2561dmin/%252561', ['admin', 'a']],
  ['/%252561/%2561dmin', ['a', 'admin']],
] as const)
  test(`An application may read ${raw} as /${reading.join('/')}`, () => {
    const readings = canonicalTarget(raw).otherReadings?.map((segments) => segments.join('/'))

    assert.ok(readings?.includes(reading.join('/')), JSON.stringify(readings))
  })
