import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalTarget } from '../../src/http/request-target.ts'
import { openPath, protocols, startLane, type Lane } from '../corpus/lanes.ts'
import { exchangeRaw } from '../support/raw-exchange.ts'
import { readStrictly, type SeenRequest } from '../support/strict-upstream.ts'
import { fuzz } from './fuzzing.ts'

/** The number of concurrent connections, each with its own application. */
const lanes = 4
const smuggled = `GET ${openPath}?smuggled HTTP/1.1\r\nHost: {host}\r\nX-Smuggled: 1\r\n\r\n`
const close = 'Connection: close\r\n'

const valid = [
  `GET ${openPath} HTTP/1.1\r\nHost: {host}\r\n\r\n`,
  `GET ${openPath} HTTP/1.1\r\nHost: {host}\r\n${close}\r\n`,
  `HEAD ${openPath} HTTP/1.1\r\nHost: {host}\r\n\r\n`,
  `DELETE ${openPath} HTTP/1.1\r\nHost: {host}\r\n${close}Content-Length: 5\r\n\r\nhello`,
  `POST ${openPath} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello`,
  `POST ${openPath} HTTP/1.1\r\nHost: {host}\r\n${close}Content-Length: 0\r\n\r\n`,
  `POST ${openPath} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  `POST ${openPath} HTTP/1.1\r\nHost: {host}\r\n${close}Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nX-T: u\r\n\r\n`,
  `POST ${openPath} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n${smuggled}`,
  `PUT ${openPath} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n{hex}\r\n${smuggled}\r\n0\r\n\r\n`,
  `GET ${openPath} HTTP/1.1\r\nHost: {host}\r\n\r\nGET ${openPath}?second HTTP/1.1\r\nHost: {host}\r\n\r\n`,
  `POST ${openPath} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nhello${smuggled}`,
]

const snippets = [
  ...[
    '\r\n',
    '\n',
    '\r',
    '\r\n\r\n',
    '\n\n',
    '\r\r\n',
    '\0',
    ' ',
    '\t',
    '\v',
    '\f',
    ':',
    ',',
    ';',
    '"',
    '=',
    '\x7f',
    '\xa0',
    '\x80',
  ],
  ...[
    '\r\n ',
    '\r\n\t',
    '\n ',
    ' \r\n',
    '0',
    '1',
    '5',
    'f',
    '00',
    '-1',
    '+5',
    '0x5',
    '5 ',
    '0\r\n\r\n',
    '\r\n0\r\n\r\n',
    '5\r\n',
    ';x',
  ],
  ...[
    'Content-Length: 5\r\n',
    'Content-Length: 0\r\n',
    'Content-Length: 6\r\n',
    'content-length:5\r\n',
    'Content-Length : 5\r\n',
  ],
  ...['Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: identity\r\n', 'Transfer-Encoding:\r\n chunked\r\n'],
  ...[
    'Transfer-Encoding : chunked\r\n',
    'Transfer-Encoding\t: chunked\r\n',
    'Transfer_Encoding: chunked\r\n',
    'transfer-encoding: xchunked\r\n',
  ],
  ...[
    'Connection: close\r\n',
    'Connection: Content-Length\r\n',
    'Connection: Transfer-Encoding\r\n',
    'Connection: keep-alive\r\n',
  ],
  ...[
    'Expect: 100-continue\r\n',
    'Host: evil.example\r\n',
    'X-A: b\nContent-Length: 9\r\n',
    'HTTP/1.0',
    'HTTP/1.1',
    'HTTP/2.0',
    'chunked',
  ],
  ...['Upgrade: websocket\r\nConnection: upgrade\r\n', 'Trailer: Content-Length\r\n', smuggled],
]

type Change = (text: string) => string

/** A position between two bytes, preferably at the start or end of a token. */
const place = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), atToken: fc.boolean() })

function find(text: string, { at, atToken }: { readonly at: number; readonly atToken: boolean }): number {
  if (!atToken) return Math.floor(at * text.length)
  const tokens = [...text.matchAll(/\r\n|[:;, ]|$/g)].flatMap(({ 0: { length }, index }) => [index, index + length])
  return tokens[Math.floor(at * (tokens.length - 1))] ?? 0
}

const snippet = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...snippets) },
  fc.string({
    unit: fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)),
    minLength: 1,
    maxLength: 2,
  }),
)

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(place, snippet).map(
      ([where, more]) =>
        (text: string) =>
          replaceAt(text, find(text, where), 0, more),
    ),
  },
  fc.tuple(place, fc.integer({ min: 1, max: 4 })).map(
    ([where, count]) =>
      (text: string) =>
        replaceAt(text, find(text, where), count, ''),
  ),
  fc.tuple(place, snippet).map(
    ([where, other]) =>
      (text: string) =>
        replaceAt(text, find(text, where), other.length, other),
  ),
  fc.tuple(place, fc.constantFrom(2, 40, 9000)).map(([where, count]) => (text: string) => {
    const at = find(text, where)
    return replaceAt(text, at, 0, (text[at] ?? 'x').repeat(count))
  }),
  // A line that is repeated or moved.
  fc.tuple(fc.nat({ max: 6 }), fc.nat({ max: 6 })).map(([from, to]) => (text: string) => {
    const lines = text.split('\r\n')
    lines.splice(to, 0, lines[from] ?? '')
    return lines.join('\r\n')
  }),
)

function replaceAt(text: string, at: number, count: number, other: string): string {
  return text.slice(0, at) + other + text.slice(at + count)
}

const mutated = fc
  .tuple(fc.constantFrom(...valid), fc.array(change, { minLength: 1, maxLength: 3 }))
  .map(([text, changes]) => changes.reduce((bytes, apply) => apply(bytes), text))

test('A request is rejected, or reaches the application as exactly one request', async (t) => {
  const gateways: Lane[] = []
  // Half of the applications speak HTTP/2.
  while (gateways.length < lanes)
    gateways.push(await startLane(t, { protocol: protocols[gateways.length % protocols.length] ?? 'HTTP/1.1' }))
  const counts = { forwarded: 0, refused: 0 }

  await fuzz(t, fc.array(mutated, { minLength: lanes, maxLength: lanes }), async (requests) => {
    await Promise.all(
      gateways.map(async ({ port, host, upstream }, index) => {
        const inside = smuggled.replaceAll('{host}', host)
        const bytes = (requests[index] ?? '')
          .replaceAll('{host}', host)
          .replaceAll('{length}', String(inside.length))
          .replaceAll('{hex}', inside.length.toString(16))
        upstream.forget()
        const { statuses } = await exchangeRaw(port, bytes, { quietMs: 25, waitMs: 250 })
        judge(bytes, upstream.seen, statuses)
        counts[upstream.seen.length > 0 ? 'forwarded' : 'refused'] += 1
      }),
    )
  })
  assert.ok(counts.forwarded > 0, 'nothing was forwarded: nothing was shown')
  t.diagnostic(`forwarded ${counts.forwarded}, refused ${counts.refused}`)
})

/**
 * Each received request must be one that the strictest recipient finds in the bytes, and each only
 * once. All others were rejected.
 */
function judge(bytes: string, seen: readonly SeenRequest[], statuses: readonly number[]): void {
  const told = () => `sent ${JSON.stringify(bytes)}\narrived ${JSON.stringify(seen)}`
  const sent = [...readStrictly(bytes)]
  for (const request of seen) {
    assert.deepEqual(request.faults, [], told())
    if (!request.isWhole) continue
    const found = sent.findIndex((original) => isSame(original, request))
    assert.ok(found >= 0, `a request that nobody sent: ${told()}`)
    sent.splice(found, 1)
  }
  assert.ok(!statuses.includes(500), told())
}

function isSame(sent: SeenRequest, arrived: SeenRequest): boolean {
  return sent.method === arrived.method && sent.body === arrived.body && forwardedAs(sent.target) === arrived.target
}

function forwardedAs(target: string): string | undefined {
  try {
    const { path, query } = canonicalTarget(target)
    return path + query
  } catch {
    return undefined
  }
}
