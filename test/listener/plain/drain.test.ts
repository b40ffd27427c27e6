import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import fc from 'fast-check'
import { loadConfig } from '../../../src/config/load.ts'
import { httpUpstream } from '../../proxy/support.ts'
import { issueCertificates } from '../../support/certificates.ts'
import { searchFor } from '../../support/searches.ts'
import { secrets, startWorld, type Replica } from '../../support/world.ts'

/** How many gateways are stopped: a few here, more with `DRAIN_RUNS`. */
const runs = Number(process.env['DRAIN_RUNS'] ?? searchFor(40, 3))

const kinds = ['now', 'held', 'big', 'upload', 'chunked', 'unusual', 'endpoint', 'form'] as const
type Kind = (typeof kinds)[number]
const uploadBytes = 90_000
const bigBytes = 1_500_000

const client = fc.record({
  requests: fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 5 }),
  /** How many bytes are sent at once. */
  step: fc.constantFrom(30, 300, 3_000, Infinity),
  /** How many turns of the event loop pass between two parts. */
  pause: fc.constantFrom(0, 1, 5),
  readsSlowly: fc.boolean(),
  halfCloses: fc.boolean(),
})
type Client = typeof client extends fc.Arbitrary<infer T> ? T : never
const gateways = fc.record({
  clients: fc.array(client, { minLength: 5, maxLength: 15 }),
  plainPath: fc.constantFrom(true, true, false),
  isTls: fc.boolean(),
  /** After how many turns it reads its configuration again. */
  reloadsAfter: fc.nat({ max: 150 }),
  /** After how many further turns it stops. */
  stopsAfter: fc.nat({ max: 150 }),
})

function textOf(kind: Kind, id: number): string {
  const head = (line: string, ...fields: readonly string[]) =>
    [`${line} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')
  const content = 'u'.repeat(uploadBytes)
  if (kind === 'upload') return head(`POST /upload/${id}`, `Content-Length: ${uploadBytes}`) + content
  if (kind === 'chunked')
    return `${head(`PUT /upload/${id}`, 'Transfer-Encoding: chunked')}${uploadBytes.toString(16)}\r\n${content}\r\n0\r\n\r\n`
  if (kind === 'unusual') return head(`GET /now/${id}`, 'TE: trailers')
  if (kind === 'endpoint') return head('GET /.gatehouse/session')
  if (kind === 'form') return `${head('POST /.gatehouse/backchannel-logout', 'Content-Length: 600')}${'f'.repeat(600)}`
  return head(`GET /${kind}/${id}`)
}

/** Divides what a client receives into the contents of responses. */
class Responses {
  readonly contents: string[] = []
  /** What has arrived of a response that is not complete. */
  rest = ''
  #missing = 0

  add(text: string): void {
    this.rest += text
    while (this.rest.length > 0 && this.rest.length >= this.#missing) {
      const end = this.rest.indexOf('\r\n\r\n')
      if (end < 0) return
      const head = this.rest.slice(0, end)
      const isInterim = /^HTTP\/1\.1 1/.test(head)
      this.#missing = end + 4 + (isInterim ? 0 : Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]))
      if (this.rest.length < this.#missing) return
      if (!isInterim) this.contents.push(this.rest.slice(end + 4, this.#missing))
      this.rest = this.rest.slice(this.#missing)
      this.#missing = 0
    }
  }
}

async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) await new Promise((resolve) => setImmediate(resolve))
}

async function reload({ gateway, file }: Replica): Promise<void> {
  const loaded = loadConfig(file, secrets)
  assert.ok(loaded.ok)
  await gateway.reload(loaded.config)
}

test('A gateway that reloads and stops sends a complete response to each request that it has passed on', async (t) => {
  const held: (() => void)[] = []
  const seen = new Map<number, number>()
  const complete = new Set<number>()
  const respond = (res: ServerResponse, content: string) =>
    void res.setHeader('Content-Length', content.length).end(content)
  const { port } = await httpUpstream(t, async (req, res) => {
    const [, kind = '', text = ''] = String(req.url).split('/')
    const id = Number(text)
    seen.set(id, (seen.get(id) ?? 0) + 1)
    let length = 0
    try {
      for await (const part of req) length += (part as Buffer).length
    } catch {
      return
    }
    complete.add(id)
    const content = `[${id} ${length}]`
    if (kind === 'held') held.push(() => respond(res, content))
    else respond(res, content.padStart(kind === 'big' ? bigBytes : 0))
  })
  const { server } = issueCertificates()
  const tls = `tls: { cert_file: ${server.cert}, key_file: ${server.key} }`
  let listen = ''
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
    drain: '60s',
    settings: 'limits: { per_client: { refused_logout_tokens: 100000/s } }',
    listen: (address) => `{ address: "${address}"${listen} }`,
  })
  let ids = 0

  const run = async ({ requests, step, pause, readsSlowly, halfCloses }: Client, gateway: number, isTls: boolean) => {
    const sent = requests.map((kind) => ({ kind, id: (ids += 1) }))
    const all = sent.map(({ kind, id }) => textOf(kind, id)).join('')
    const responses = new Responses()
    const address = { port: gateway, host: '127.0.0.1', allowHalfOpen: true }
    const socket = isTls ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address)
    let isOver = false
    const over = new Promise<void>((resolve) => {
      const end = () => {
        isOver = true
        resolve()
      }
      socket
        .on('error', () => {})
        .once('end', end)
        .once('close', end)
      socket.on('data', (part: Buffer) => {
        responses.add(part.toString('latin1'))
        if (responses.contents.length === sent.length) end()
        else if (readsSlowly) {
          socket.pause()
          setTimeout(() => socket.resume(), 2)
        }
      })
    })
    for (let at = 0; at < all.length && !isOver; at += step) {
      socket.write(all.slice(at, Math.min(at + step, all.length)), 'latin1')
      await turns(1 + pause)
    }
    // Over TLS, the end of the client's data is the end of the connection (RFC 9112 §9.8).
    if (halfCloses && !isTls) socket.end()
    await over
    socket.end()
    const { contents, rest } = responses
    const about = JSON.stringify({ requests, step, pause, readsSlowly, halfCloses, responses: contents.length })
    assert.ok(rest === '', `an incomplete response of ${rest.length} bytes: ${about}`)
    for (const [at, { kind, id }] of sent.entries()) {
      assert.ok((seen.get(id) ?? 0) <= 1, `request ${at} was carried out twice: ${about}`)
      const content = contents[at]?.trimStart()
      if (content === undefined)
        assert.ok(!complete.has(id), `request ${at} was carried out without a response: ${about}`)
      else if (kind !== 'endpoint' && kind !== 'form')
        assert.equal(content, `[${id} ${kind === 'upload' || kind === 'chunked' ? uploadBytes : 0}]`, about)
    }
  }

  await fc.assert(
    fc.asyncProperty(gateways, async ({ clients, plainPath, isTls, reloadsAfter, stopsAfter }) => {
      listen = `, plain_path: ${plainPath}${isTls ? `, ${tls}` : ''}`
      const replica = await world.startReplica()
      const outcomes = Promise.allSettled(clients.map((each) => run(each, replica.gateway.address.port, isTls)))
      await turns(reloadsAfter)
      const reloaded = reload(replica)
      await turns(stopsAfter)
      const stopped = replica.stop()
      const releasing = setInterval(() => {
        for (const respondTo of held.splice(0)) respondTo()
      }, 5)
      const [failed] = (await outcomes).filter(({ status }) => status === 'rejected')
      await Promise.all([reloaded, stopped])
      clearInterval(releasing)
      if (failed?.status === 'rejected') throw failed.reason
    }),
    { numRuns: runs, endOnFailure: true },
  )
})
