import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { PlainRequest } from '../../../src/listener/plain/plain-request.ts'
import type { PlainResponse } from '../../../src/listener/plain/plain-response.ts'
import { httpUpstream, RawClient } from '../../proxy/support.ts'
import { until } from '../../support/until.ts'
import { startWorld } from '../../support/world.ts'
import { startFront } from './front.ts'

const head = (line: string, ...fields: readonly string[]) =>
  [`${line} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')
const upload = (path: string) => `${head(`POST ${path}`, 'Content-Length: 100')}the first part`

/** Where the client is when it leaves, and what it has sent. */
const stages = [
  ['before the head of the response', head('GET /silent')],
  ['in the body of the response', head('GET /begun')],
  ['in its upload', upload('/silent')],
  ['in its upload, and in the body of the response', upload('/begun')],
] as const

/** Fails when Node.js warns, for example of more than ten listeners. */
function noWarnings(t: TestContext): void {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  t.after(() => {
    process.off('warning', note)
    assert.deepEqual(warnings, [])
  })
}

for (const [where, sent] of stages) {
  const hasBegun = sent.includes('/begun')
  test(`A client that leaves ${where} cancels its request, with one line in the access log`, async (t) => {
    noWarnings(t)
    const underWay = new Set<string>()
    const upstream = await httpUpstream(t, (req, res) => {
      const url = String(req.url)
      underWay.add(url)
      res.once('close', () => underWay.delete(url))
      if (url === '/begun') res.write('the first part')
      if (url === '/whole') res.end()
    })
    const world = await startWorld(t, {
      upstream: new URL(`http://127.0.0.1:${upstream.port}`),
      upstreamSettings: 'rules: [{ path: /*, access: public }]',
    })
    const gateway = Number(new URL(world.url).port)
    const access = () => world.replicas[0]?.access ?? []

    const leaving = new RawClient(t, gateway).send(sent)
    await until('the upstream has the request', () => underWay.size === 1)
    if (hasBegun) await leaving.until(/the first part/)
    leaving.socket.destroy()
    await until('the upstream sees the end', () => underWay.size === 0)
    await until('the access log has the request', () => access().length === 1)
    const [line] = access()
    assert.deepEqual([line?.['status'], line?.['aborted']], [hasBegun ? 200 : 499, true])

    await new RawClient(t, gateway).send(head('GET /whole', 'Connection: close')).untilClosed()
    assert.equal(access().length, 2)
  })

  test(`Without listeners, a client that leaves ${where} closes both messages, and others are served`, async (t) => {
    noWarnings(t)
    const messages: [PlainRequest, PlainResponse][] = []
    const { port } = await startFront(t, (req, res) => {
      if (req.url === '/whole') return void res.end('whole')
      messages.push([req.resume(), res])
      if (req.url === '/begun') res.writeHead(200).write(Buffer.from('the first part'))
    })

    const leaving = new RawClient(t, port).send(sent)
    await until('the request has arrived', () => messages.length === 1)
    if (hasBegun) await leaving.until(/the first part/)
    leaving.socket.resetAndDestroy()
    const [[req, res]] = messages as [[PlainRequest, PlainResponse]]
    await until('both messages are closed', () => req.destroyed && res.destroyed)
    assert.equal(res.writableFinished, false)
    assert.equal(req.complete, sent.startsWith('GET'))

    assert.match(await new RawClient(t, port).send(head('GET /whole', 'Connection: close')).untilClosed(), /whole/)
  })
}

for (const [who, leave] of [
  ['The client', (client: RawClient) => client.socket.resetAndDestroy()],
  ['The gateway', (_: RawClient, res: PlainResponse) => res.destroy()],
] as const)
  test(`A response is not complete when its end was not sent: ${who} closes the connection`, async (t) => {
    const responses: PlainResponse[] = []
    // More than the buffers of both kernels take.
    const { port } = await startFront(t, (_req, res) => void responses.push(res.end(Buffer.alloc(64 * 1024 * 1024))))
    const client = new RawClient(t, port)
    client.socket.pause()
    client.send(head('GET /large'))
    await until('the response has begun', () => responses.length === 1)
    const [res] = responses as [PlainResponse]
    let closed = 0
    res.on('close', () => (closed += 1))

    leave(client, res)

    await until('the response is closed', () => res.destroyed)
    assert.equal(res.writableFinished, false)
    assert.equal(closed, 1)
  })
