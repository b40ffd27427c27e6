import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exchangeRaw, headerOf } from '../support/raw-exchange.ts'
import { readCases, repeated, runCases } from './lanes.ts'
import { pathReadings } from './path-readings.ts'

interface Paths {
  /** Nobody gets there without a sign-in. */
  readonly protected: string
  readonly cases: readonly string[]
}

const { protected: closed, cases } = readCases<Paths>('paths.json')

const configurations = {
  'all but /public/* needs a sign-in': { rules: '{ path: /public/*, access: public }', foldsCase: true },
  // Whoever lists what is closed has to list it in each case that the application reads alike.
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
        const answer = await exchangeRaw(port, head)

        for (const request of upstream.seen) {
          const meant = pathReadings(request.target, { foldsCase }).filter(
            (path) => path === closed || path.startsWith(`${closed}/`),
          )
          assert.deepEqual(meant, [], `forwarded as ${JSON.stringify(request.target)}`)
        }
        assert.notEqual(answer.statuses[0], undefined, 'no answer')
        assert.notEqual(answer.statuses[0], 500)
        assert.doesNotMatch(headerOf(answer.text, 'location') ?? '/', /^(?:\/[\\/]|\\)/)
      },
      { upstreamSettings: `rules: [${rules}]` },
    )
  })
