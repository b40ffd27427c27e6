import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Stream } from 'node:http2'
import { test } from 'node:test'
import { linesNamed } from '../proxy/support.ts'
import { startHttp2World } from '../support/http2.ts'

const repeated = [
  ['WWW-Authenticate', ['Basic realm="a"', 'Digest realm="b", nonce="c"']],
  ['Strict-Transport-Security', ['max-age=1', 'max-age=2; includeSubDomains']],
  ['Set-Cookie', ['a=1; Path=/', 'b=2; Path=/']],
  ['X-Two', ['1, 2', '3']],
] as const
const trailers = ['X-Sum', '1', 'X-Sum', '2, 3']

const rawFields = async (stream: ClientHttp2Stream, event: 'response' | 'trailers') => {
  const [, , raw] = (await once(stream, event)) as [unknown, unknown, string[]]
  return raw
}

test('Over HTTP/2, each value of a repeated field stays a field of its own, also in trailers', async (t) => {
  const world = await startHttp2World(t, (_req, res) => {
    const fields = repeated.flatMap(([name, values]) => values.flatMap((value) => [name, value]))
    res.writeHead(200, [...fields, 'Trailer', 'X-Sum', 'Content-Type', 'text/plain'])
    res.addTrailers([trailers.slice(0, 2), trailers.slice(2)] as unknown as Record<string, string>)
    res.end('content')
  })
  const stream = world.connect().request({ ':path': '/public/x' })
  stream.resume()
  const [head, end] = await Promise.all([rawFields(stream, 'response'), rawFields(stream, 'trailers')])

  for (const [name, values] of repeated) assert.deepEqual(linesNamed(head, name), values)
  assert.deepEqual(linesNamed(end, 'X-Sum'), ['1', '2, 3'])
})

test('Over HTTP/2, a field that may have one value only does not prevent a response that repeats it', async (t) => {
  const world = await startHttp2World(t, (_req, res) =>
    res.writeHead(302, ['Location', '/a', 'Location', '/b', 'Content-Length', '0']).end(),
  )
  const stream = world.connect().request({ ':path': '/public/x' })

  const head = await rawFields(stream, 'response')

  // Node.js 22 cannot send it twice.
  assert.equal(linesNamed(head, 'Location').join(', '), '/a, /b')
})
