import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exchangeRaw, headerOf } from '../support/raw-exchange.ts'
import { readCases, repeated, runCases } from './lanes.ts'
import { pathReadings } from './path-readings.ts'

interface Paths {
  /** This path requires a sign-in. */
  readonly protected: string
  readonly cases: readonly string[]
}

const { protected: closed, cases } = readCases<Paths>('paths.json')

const configurations = {
  'all but /public/* needs a sign-in': { rules: '{ path: /public/*, access: public }', foldsCase: true },
  // A list of protected paths must contain each spelling in upper and lower case that the
  // application treats as equal.
  'only /admin/* needs a sign-in': { rules: '{ path: /admin/* }, { path: /*, access: public }', foldsCase: false },
}

for (const [what, { rules, foldsCase }] of Object.entries(configurations))
  test(`Disguised paths, where ${what}: no request reaches the protected path`, { concurrency: true }, async (t) => {
    await runCases(
      t,
      cases,
      (target) => JSON.stringify(target),
      async (target, { port, host, upstream }) => {
        const filled = Buffer.from(repeated(target).replaceAll('{host}', host)).toString('latin1')
        const head = `GET ${filled} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n`
        const response = await exchangeRaw(port, head)

        for (const request of upstream.seen) {
          const meant = pathReadings(request.target, { foldsCase }).filter(
            (path) => path === closed || path.startsWith(`${closed}/`),
          )
          assert.deepEqual(meant, [], `forwarded as ${JSON.stringify(request.target)}`)
        }
        assert.notEqual(response.statuses[0], undefined, 'no answer')
        assert.notEqual(response.statuses[0], 500)
        assert.doesNotMatch(headerOf(response.text, 'location') ?? '/', /^(?:\/[\\/]|\\)/)
      },
      { rules },
    )
  })
