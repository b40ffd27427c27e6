import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GatewayError } from '../../src/core/errors.ts'
import { HeldResponse, maxHeldBytes, type ReplaceableResponse } from '../../src/proxy/held-response.ts'

/** A response that is held until it is complete, and whether the client gets it. */
function held() {
  let isPassedOn = false
  const last: ReplaceableResponse = {
    onSend: () => true,
    onResponse: () => void (isPassedOn = true),
    onShortPart: () => {},
    onContent: () => {},
    onEnd: () => {},
    onSwitch: () => {},
    onError: () => {},
    onDone: () => {},
    holdResponse: () => {},
    replaceResponse: () => {},
  }
  const watch = { holds: () => true, examine: () => new Promise<undefined>(() => {}) }
  const response = new HeldResponse(last, watch, last)
  response.onResponse(200, 'OK', [])
  return { response, isPassedOn: () => isPassedOn }
}

test('Pages that are held for a sign-in take 32 MiB at most, and further ones are passed on', (t) => {
  const whole = Buffer.alloc(maxHeldBytes)
  const responses = Array.from({ length: 128 }, held)
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

  for (const { response } of responses) response.onError(new GatewayError('ERR_UPSTREAM_RESPONSE', 'over'))
  const later = held()
  t.after(() => later.response.onError(new GatewayError('ERR_UPSTREAM_RESPONSE', 'over')))
  later.response.onContent(whole, () => {})
  assert.equal(later.isPassedOn(), false)
})
