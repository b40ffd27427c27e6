import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { GatewayError } from '../../src/core/errors.ts'
import type { ConnectionSlot, SlotHolder } from '../../src/proxy/connection-slots.ts'
import { HeldResponse, maxHeldBytes, type ReplaceableResponse } from '../../src/proxy/held-response.ts'
import { OwnExchange } from '../../src/proxy/own-exchange.ts'
import type { Upstream } from '../../src/proxy/upstream.ts'
import type { ResponseHandler, UpstreamRequest } from '../../src/transport/transport.ts'

const over = new GatewayError('ERR_UPSTREAM_RESPONSE', 'over')

/** A response that is held until it is complete, and whether the client gets it. */
function held(fields: string[] = [], examine = () => new Promise<undefined>(() => {})) {
  let isPassedOn = false
  const parts: Buffer[] = []
  const last: ReplaceableResponse = {
    onSend: () => true,
    onResponse: () => void (isPassedOn = true),
    onShortPart: () => {},
    onContent: (part) => void parts.push(part),
    onEnd: () => {},
    onSwitch: () => {},
    onError: () => {},
    onDone: () => {},
    holdResponse: () => {},
    replaceResponse: () => {},
  }
  const watch = { holds: () => true, examine }
  const response = new HeldResponse(last, watch, last)
  response.onResponse(200, 'OK', fields)
  return { response, parts, isPassedOn: () => isPassedOn }
}

test('Pages that are held for a sign-in take 32 MiB at most, and further ones are passed on', (t) => {
  const whole = Buffer.alloc(maxHeldBytes)
  const responses = Array.from({ length: 128 }, () => held())
  for (const { response } of responses) response.onContent(whole, () => {})
  assert.deepEqual(
    responses.filter(({ isPassedOn }) => isPassedOn()),
    [],
  )

  const further = held()
  further.response.onContent(Buffer.from('x'), () => {})
  assert.equal(further.isPassedOn(), true)

  // Those that wait for the end of a sign-in still count.
  responses[0]?.response.onEnd([])
  const another = held()
  another.response.onContent(Buffer.from('x'), () => {})
  assert.equal(another.isPassedOn(), true)

  for (const { response } of responses) response.onError(over)
  const later = held()
  t.after(() => later.response.onError(over))
  later.response.onContent(whole, () => {})
  assert.equal(later.isPassedOn(), false)
})

test('Compressed pages that are held count with their content', (t) => {
  const compressed = gzipSync(Buffer.alloc(maxHeldBytes))
  const responses = Array.from({ length: 129 }, () => held(['Content-Encoding', 'gzip']))
  t.after(() => responses.forEach(({ response }) => response.onError(over)))
  for (const { response } of responses) {
    response.onContent(compressed, () => {})
    response.onEnd([])
  }

  assert.ok(responses.filter(({ isPassedOn }) => isPassedOn()).length > 0)
})

test('A page that arrives byte by byte is not held as thousands of parts', () => {
  const whole = Buffer.from(Array.from({ length: maxHeldBytes + 1 }, (_, at) => at % 251))
  const { response, parts } = held()
  for (let at = 0; at < whole.length; at += 1) response.onShortPart(whole.subarray(at, at + 1))

  assert.ok(Buffer.concat(parts).equals(whole))
  // Each takes more than 200 bytes.
  assert.ok(parts.length < 2_000, `${parts.length} parts`)
})

test('A page that the gateway opens, and that arrives byte by byte, is not held as thousands of parts', async (t) => {
  const whole = Buffer.from(Array.from({ length: maxHeldBytes }, (_, at) => at % 251))
  let handler: ResponseHandler | undefined
  const upstream = {
    slots: { isFullFor: () => false, acquire: (_: string, holder: SlotHolder) => void holder.onSlot(slot) },
    transport: { dispatch: (_: unknown, response: ResponseHandler) => void (handler = response) },
  }
  const slot = {} as ConnectionSlot
  const options = { timeoutMs: 10_000, maxContentBytes: maxHeldBytes }
  const exchange = new OwnExchange(upstream as unknown as Upstream, {} as UpstreamRequest, 'jane', options)
  const concat = t.mock.method(Buffer, 'concat')
  handler?.onResponse(200, 'OK', [])
  for (let at = 0; at < whole.length; at += 1) handler?.onShortPart(whole.subarray(at, at + 1))
  handler?.onEnd([])

  assert.ok((await exchange.response).content.equals(whole))
  const counts = concat.mock.calls.map(({ arguments: [parts] }) => parts.length)
  assert.ok(Math.max(...counts) < 2_000, `${Math.max(...counts)} parts`)
})

test('A response without content is passed on without content', async () => {
  const { response, parts, isPassedOn } = held([], () => Promise.resolve(undefined))
  response.onEnd([])
  await new Promise(setImmediate)

  assert.equal(isPassedOn(), true)
  assert.deepEqual(parts, [])
})
