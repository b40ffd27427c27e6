import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { asAsked } from '../../src/check-requests/check-request.ts'
import { createRouteTable, type Route } from '../../src/gate/rules/route-table.ts'
import type { RequestFacts } from '../../src/http/request-facts.ts'
import { canonicalTarget } from '../../src/http/request-target.ts'
import { rule, upstream } from '../gate/rules/configs.ts'
import { everyReading, hostile } from '../http/readings.ts'
import { searchFor } from '../support/searches.ts'

const table = createRouteTable([upstream({ rules: [rule('/public/*', { access: 'public' })] })])

function accepted(raw: string): { route: Route | undefined } | undefined {
  try {
    const facts = { target: canonicalTarget(raw) } as RequestFacts
    return { route: table.route('any', 'GET', asAsked(facts, raw).target) }
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'ERR_REQUEST_TARGET')
    return undefined
  }
}

/**
 * How an application may read a path in which nobody has resolved dot segments, besides the
 * readings of a canonical path: empty segments stay, or are removed after dot segments (RFC 3986
 * §5.2.4).
 */
function readingsOfUnresolved(path: string): string[][] {
  const stack: string[] = []
  for (const segment of path.slice(1).split('/'))
    if (segment === '..') stack.pop()
    else if (segment !== '.') stack.push(segment)
  const withoutAuthority = path.startsWith('//') ? everyReading(path.replace(/^\/+[^/]*/, '') || '/') : []
  return [path.slice(1).split('/'), stack, stack.filter((segment) => segment !== ''), ...withoutAuthority]
}

test('However an application reads a path that another proxy forwards, the rule of that reading is not stricter', () => {
  let throughOpen = 0
  fc.assert(
    fc.property(hostile, (raw) => {
      const through = accepted(raw)
      if (through === undefined) return
      if (through.route?.rule.access === 'public') throughOpen += 1
      const path = raw.replace(/\?.*$/s, '')
      for (const segments of [...everyReading(path), ...readingsOfUnresolved(path)]) {
        const meant = table.route('any', 'GET', { segments })
        // Segments that an application rejects, or looks up literally, are no reading of a rule.
        if (segments.includes('..')) continue
        assert.equal(meant?.rule.access, through.route?.rule.access, `${raw} → /${segments.join('/')}`)
      }
    }),
    { numRuns: searchFor(20_000) },
  )
  assert.ok(throughOpen > searchFor(200), `only ${throughOpen} of the cases were let through`)
})
