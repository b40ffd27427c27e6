import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { field, flags, frame, RawHttp2, types } from '../support/http2-frames.ts'
import {
  fold,
  isIdentityName,
  openPath,
  protectedPath,
  protocols,
  readCases,
  repeated,
  runCases,
  type Lane,
} from './lanes.ts'
import { pathReadings } from './path-readings.ts'

// The cases of the corpus that can be written in HTTP/2, as frames that no client library has
// checked.

type Field = readonly [name: string, value: string]

const overHttp2 = { listen: (address: string) => `{ address: "${address}", h2c: true }` }
/** Indexed `:status: 500` (RFC 7541 Appendix A). */
const status500 = 0x8e

/**
 * Sends a request, and waits until its stream or the connection ends. Resolves to the beginning of
 * the response.
 */
async function send(
  t: TestContext,
  { port }: Lane,
  fields: readonly Field[],
  content = '',
): Promise<Buffer | undefined> {
  const client = new RawHttp2(t, port)
  const block = Buffer.concat(fields.map(([name, value]) => field(name, value)))
  const end = content === '' ? flags.endStream : 0
  client.send(frame(types.headers, flags.endHeaders | end, 1, block))
  if (content !== '') client.send(frame(types.data, flags.endStream, 1, Buffer.from(content, 'latin1')))
  const isOver = () =>
    client.frames.some(({ stream, type, flags: flag }) => {
      const endsStream = type <= types.headers && (flag & flags.endStream) !== 0
      return type === types.goaway || (stream === 1 && (type === types.rstStream || endsStream))
    })
  while (!isOver() && !client.socket.closed)
    await Promise.race([once(client.socket, 'data'), once(client.socket, 'close')])
  client.socket.destroy()
  return client.of(types.headers)[0]?.payload
}

function pseudo(method: string, path: string, authority: string): Field[] {
  return [
    [':method', method],
    [':scheme', 'http'],
    [':path', path],
    [':authority', authority],
  ]
}

/** The fields of lines, with names in lower case, as HTTP/2 requires. */
function fieldsOf(lines: readonly string[]): Field[] {
  return lines.map((line) => {
    const colon = line.indexOf(':', 1)
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).replace(/^ /, '')]
  })
}

/** Who sends the requests, and what the application speaks. */
const both = (['anonymous', 'signed in'] as const).flatMap((who) =>
  protocols.map((protocol) => [who, protocol] as const),
)

const forged = readCases<{
  readonly value: string
  readonly cases: readonly {
    readonly name: string
    readonly lines: readonly string[]
    readonly isForwarding?: boolean
  }[]
}>('identity-headers.json')

for (const [who, protocol] of both)
  test(`Forged header fields over HTTP/2 to ${protocol}, ${who}: only the gateway sets the identity`, async (t) => {
    await runCases(
      t,
      forged.cases,
      ({ name }) => name,
      async ({ lines, isForwarding }, lane, t) => {
        const { host, cookie, upstream } = lane
        const secret = cookie.slice(cookie.indexOf('=') + 1)
        const fields = fieldsOf(lines.map((line) => line.replaceAll('{session}', secret)))
        const own: Field[] = who === 'signed in' ? [['cookie', cookie]] : []

        const head = await send(t, lane, [...pseudo('GET', openPath, host), ...own, ...fields])

        assert.notEqual(head?.[0], status500)
        for (const { headers, faults } of upstream.seen) {
          assert.deepEqual(faults, [], 'an application could read it in another way')
          for (const [name, text] of headers) {
            assert.ok(
              !(isIdentityName(name) && text.includes(forged.value)),
              `the application was told ${name}: ${text}`,
            )
            assert.ok(!(name.toLowerCase() === 'cookie' && text.includes(secret)), 'the session cookie went on')
          }
          const subjects = headers.filter(([name]) => fold(name) === 'x-user-sub').map(([, text]) => text)
          assert.deepEqual(subjects, who === 'signed in' ? ['jane'] : [])
        }
        if (isForwarding !== true) return
        upstream.forget()
        await send(t, lane, [...pseudo('GET', protectedPath, host), ...fields])
        assert.deepEqual(upstream.seen, [])
      },
      { ...overHttp2, protocol },
    )
  })

const paths = readCases<{ readonly protected: string; readonly cases: readonly string[] }>('paths.json')

test('Disguised paths over HTTP/2: no request reaches the protected path', async (t) => {
  await runCases(
    t,
    paths.cases,
    (target) => JSON.stringify(target),
    async (target, lane, t) => {
      const filled = Buffer.from(repeated(target).replaceAll('{host}', lane.host)).toString('latin1')

      const head = await send(t, lane, [...pseudo('GET', filled, lane.host), ['accept', 'text/html']])

      assert.notEqual(head?.[0], status500)
      for (const { target: forwarded } of lane.upstream.seen) {
        const meant = pathReadings(forwarded, { foldsCase: true })
        const closed = meant.filter((path) => path === paths.protected || path.startsWith(`${paths.protected}/`))
        assert.deepEqual(closed, [], `forwarded as ${JSON.stringify(forwarded)}`)
      }
    },
    { ...overHttp2, rules: '{ path: /public/*, access: public }' },
  )
})

interface RawCase {
  readonly name: string
  readonly raw: string
  readonly allow: readonly string[]
  readonly isSlow?: boolean
  readonly body?: string
}

const raw = readCases<{ readonly cases: readonly RawCase[] }>('raw-http.json').cases.filter(
  ({ raw, isSlow }) => isSlow !== true && /^\S+ \S+ HTTP\/1\.1\r\n(?:[^\r\n:]+:[^\r\n]*\r\n|\{cookie\})+\r\n/.test(raw),
)

for (const protocol of protocols)
  test(`Raw requests over HTTP/2 to ${protocol}: framing of HTTP/1.1 means nothing, and nothing is smuggled`, async (t) => {
    await runCases(
      t,
      raw,
      ({ name }) => name,
      async ({ raw }, lane, t) => {
        const smuggled = `GET ${protectedPath} HTTP/1.1\r\nHost: ${lane.host}\r\nX-Smuggled: 1\r\n\r\n`
        const text = repeated(
          raw.replaceAll('{host}', lane.host).replaceAll('{open}', openPath).replaceAll('{protected}', protectedPath),
        )
          .replaceAll('{cookie}', `Cookie: ${lane.cookie}\r\n`)
          .replaceAll('{smuggled:hex}', smuggled.length.toString(16))
          .replaceAll(/\{smuggled:length(?:\+(\d+))?\}/g, (_, more = '0') => String(smuggled.length + Number(more)))
          .replaceAll('{smuggled}', smuggled)
        const end = text.indexOf('\r\n\r\n')
        const [line = '', ...lines] = text.slice(0, end).split('\r\n')
        const [method = '', path = ''] = line.split(' ')

        const head = await send(t, lane, [...pseudo(method, path, lane.host), ...fieldsOf(lines)], text.slice(end + 4))

        assert.notEqual(head?.[0], status500)
        for (const { target, headers, faults } of lane.upstream.seen) {
          assert.deepEqual(faults, [], 'an application could read it in another way')
          const names = headers.map(([name]) => name.toLowerCase())
          assert.ok(!names.includes('x-smuggled'), 'a request was smuggled')
          assert.ok(!target.startsWith(protectedPath) || path.startsWith(protectedPath), target)
        }
        assert.ok(lane.upstream.seen.length <= 1)
      },
      { ...overHttp2, protocol },
    )
  })
