import assert from 'node:assert/strict'
import { request as startRequest } from 'node:http'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { flags, frame, types } from '../../support/http2-frames.ts'
import { until } from '../../support/until.ts'
import { block, frameServer, goaway, resetStream } from '../../transport/http2/frames.ts'
import { startGateway } from '../support.ts'

type Ending = (socket: Socket, stream: number) => unknown
const { endHeaders, endStream } = flags
const head = frame.bind(undefined, types.headers, endHeaders)
const ok = block([[':status', '200']])

/** How the first target ends an exchange. */
const endings = {
  'RST_STREAM with NO_ERROR': (socket, stream) => socket.write(resetStream(stream, 0)),
  'RST_STREAM with INTERNAL_ERROR': (socket, stream) => socket.write(resetStream(stream, 2)),
  'RST_STREAM with REFUSED_STREAM': (socket, stream) => socket.write(resetStream(stream, 7)),
  'RST_STREAM with CANCEL': (socket, stream) => socket.write(resetStream(stream, 8)),
  'GOAWAY that leaves the request out': (socket) => socket.end(goaway(0)),
  'GOAWAY that names the request, and the end of the connection': (socket, stream) => socket.end(goaway(stream)),
  'GOAWAY with an error': (socket, stream) => socket.end(goaway(stream, 2)),
  'the end of the connection': (socket) => socket.end(),
} satisfies Record<string, Ending>
type Name = keyof typeof endings
const names = Object.keys(endings) as Name[]

/** What it sends before. */
const phases = {
  'before the response': () => [],
  'in an upload': () => [],
  'after the head': (stream: number) => [head(stream, ok)],
  'in the content': (stream: number) => [head(stream, ok), frame(types.data, 0, stream, 'part')],
  'after the content, before its end': (stream: number) => [
    head(stream, Buffer.concat([ok, block([['content-length', '4']])])),
    frame(types.data, 0, stream, 'part'),
  ],
} satisfies Record<string, (stream: number) => Buffer[]>
type Phase = keyof typeof phases

interface Outcome {
  readonly status: number | undefined
  readonly body: string
  readonly isWhole: boolean
}

function exchange(port: number, method: string, isUpload: boolean): Promise<Outcome> {
  return new Promise((resolve) => {
    const fields = isUpload ? { 'transfer-encoding': 'chunked' } : { 'content-length': 0 }
    const sent = startRequest({ port, host: '127.0.0.1', method, agent: false, headers: fields }, (response) => {
      let body = ''
      const end = (isWhole: boolean) => () => resolve({ status: response.statusCode, body, isWhole })
      response.setEncoding('latin1').on('data', (part) => (body += part))
      response.on('end', end(true)).on('error', end(false))
    })
    sent.on('error', () => resolve({ status: undefined, body: '', isWhole: false }))
    if (isUpload) sent.write('begun')
    else sent.end()
  })
}

/** A request whose first target responds and ends like this. */
async function attempt(t: TestContext, phase: Phase, name: Name, method: string) {
  const seen: string[] = []
  const first = await frameServer(t, (socket, stream) => {
    seen.push('first')
    for (const each of phases[phase](stream)) socket.write(each)
    endings[name](socket, stream)
  })
  const second = await frameServer(t, (socket, stream) => {
    seen.push('second')
    socket.write(Buffer.concat([head(stream, ok), frame(types.data, endStream, stream, 'of the second')]))
  })
  const targets = [first, second].map(({ port }) => ({
    ...{ url: new URL(`http://127.0.0.1:${port}`), socketPath: undefined, weight: 1, backup: false },
  }))
  const { port, upstreams } = await startGateway(t, 1, {
    upstream: { protocol: 'h2c', url: targets[0]?.url as URL, targets },
  })
  const outcome = await exchange(port, method, phase === 'in an upload')
  const states = () => [...upstreams.targets()].flatMap(([, each]) => each)
  await until('no request is open', () => states().every(({ open }) => open === 0))
  return { outcome, seen, reason: states()[0]?.reason }
}

/** The target says that it has not processed the request. */
const refusals: ReadonlySet<Name> = new Set(['RST_STREAM with REFUSED_STREAM', 'GOAWAY that leaves the request out'])
const malformed: Name = 'RST_STREAM with NO_ERROR'

for (const name of names)
  for (const method of ['GET', 'POST']) {
    const isRepeated = refusals.has(name) || (method === 'GET' && name !== malformed)
    test(`${method} ${isRepeated ? 'goes to another target' : 'gets 502'} after ${name} before the response`, async (t) => {
      const { outcome, seen, reason } = await attempt(t, 'before the response', name, method)

      assert.equal(outcome.status, isRepeated ? 200 : 502)
      // A refused request is sent to its target once more.
      const before = refusals.has(name) ? ['first', 'first'] : ['first']
      assert.deepEqual(seen, isRepeated ? [...before, 'second'] : before)
      assert.equal(reason === undefined, name === malformed)
    })

    test(`${method} gets 502 after ${name} in its upload`, async (t) => {
      const { outcome, seen, reason } = await attempt(t, 'in an upload', name, method)

      assert.equal(outcome.status, 502)
      assert.deepEqual(seen, ['first'])
      // The client has not sent the rest.
      assert.equal(reason, undefined)
    })
  }

for (const name of names)
  for (const phase of ['after the head', 'in the content'] as const)
    for (const method of ['GET', 'POST'])
      test(`The response to ${method} is incomplete after ${name} ${phase}, and its target has not failed`, async (t) => {
        const { outcome, seen, reason } = await attempt(t, phase, name, method)

        assert.deepEqual([outcome.status, outcome.isWhole], [200, false])
        assert.deepEqual(seen, ['first'])
        assert.equal(reason, undefined)
      })

for (const name of names)
  test(`A response of the announced length is complete, despite ${name}`, async (t) => {
    const { outcome, seen, reason } = await attempt(t, 'after the content, before its end', name, 'POST')

    assert.deepEqual(outcome, { status: 200, body: 'part', isWhole: true })
    assert.deepEqual(seen, ['first'])
    assert.equal(reason, undefined)
  })
