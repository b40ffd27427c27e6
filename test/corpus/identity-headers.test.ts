import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exchangeRaw, headerOf } from '../support/raw-exchange.ts'
import { fold, isIdentityName, openPath, protectedPath, protocols, readCases, runCases, type Lane } from './lanes.ts'

interface HeaderCase {
  readonly name: string
  readonly lines: readonly string[]
  /** The header gives the address of the client or the original request. */
  readonly isForwarding?: boolean
}

const { value, cases } = readCases<{ readonly value: string; readonly cases: readonly HeaderCase[] }>(
  'identity-headers.json',
)

const both = (['anonymous', 'signed in'] as const).flatMap((who) =>
  protocols.map((protocol) => [who, protocol] as const),
)

for (const [who, protocol] of both)
  test(
    `Forged header lines to ${protocol}, ${who}: only the gateway sets the identity`,
    { concurrency: true },
    async (t) => {
      await runCases(
        t,
        cases,
        ({ name }) => name,
        async (aCase, lane) => {
          const lines = linesOf(aCase, lane)
          const cookie = who === 'signed in' ? `Cookie: ${lane.cookie}\r\n` : ''
          const response = await exchangeRaw(lane.port, requestFor(openPath, lane, cookie + lines))

          assert.notEqual(response.statuses[0], 500)
          const secret = lane.cookie.slice(lane.cookie.indexOf('=') + 1)
          for (const { headers, trailers, faults } of lane.upstream.seen) {
            assert.deepEqual(faults, [], 'an application could read it in another way')
            assert.deepEqual(trailers, [])
            for (const [name, text] of headers) {
              assert.ok(!(isIdentityName(name) && text.includes(value)), `the application was told ${name}: ${text}`)
              assert.ok(!(name.toLowerCase() === 'cookie' && text.includes(secret)), 'the session cookie went on')
            }
            if (who === 'signed in') {
              const subjects = headers.filter(([name]) => fold(name) === 'x-user-sub').map(([, text]) => text)
              assert.deepEqual(subjects, ['jane'])
            }
          }
          if (aCase.isForwarding) await staysProtected(lane, lines)
        },
        { protocol },
      )
    },
  )

/** A request for a protected path is not forwarded, and is redirected as without these lines. */
async function staysProtected(lane: Lane, lines: string): Promise<void> {
  lane.upstream.forget()
  const [plain, forged] = [await anonymously(lane, ''), await anonymously(lane, lines)]
  assert.deepEqual(lane.upstream.seen, [])
  assert.deepEqual(forged, plain)
}

async function anonymously(lane: Lane, lines: string): Promise<unknown> {
  const { text, statuses } = await exchangeRaw(lane.port, requestFor(protectedPath, lane, lines))
  const changing = /([?&](?:state|nonce|code_challenge)=|gatehouse-signin-)[\w.=-]+/g
  return [statuses, ...['location', 'set-cookie'].map((name) => headerOf(text, name)?.replaceAll(changing, '$1'))]
}

function requestFor(path: string, { host }: Lane, lines: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\n${lines}Connection: close\r\n\r\n`
}

function linesOf({ lines }: HeaderCase, { cookie }: Lane): string {
  const session = cookie.slice(cookie.indexOf('=') + 1)
  return lines.map((line) => `${line.replaceAll('{session}', session)}\r\n`).join('')
}
