import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GatewayError } from '../../src/core/errors.ts'
import { HeldResponse, type ReplaceableResponse, type ResponseWatch } from '../../src/proxy/held-response.ts'

/** A response of an upstream, and what its client has got. */
function started(watch: Partial<ResponseWatch> = {}, fails = false) {
  const got: string[] = []
  const last: ReplaceableResponse = {
    onSend: () => true,
    onResponse: (status) => {
      if (fails) throw new Error('the client cannot get it')
      got.push(String(status))
    },
    onShortPart: (part) => void got.push(part.toString()),
    onContent: (part, giveBack) => {
      got.push(part.toString())
      giveBack()
    },
    onEnd: (trailers) => void got.push(`end ${trailers.join()}`),
    onSwitch: () => {},
    onError: ({ code }) => void got.push(code),
    onDone: () => {},
    holdResponse: () => void got.push('complete'),
    replaceResponse: (next) => next(),
  }
  const response = new HeldResponse(last, { holds: () => true, examine: async () => undefined, ...watch }, last)
  return { response, got }
}

const turn = () => new Promise(setImmediate)

test('A response that no watch wants is passed on as it arrives', () => {
  const { response, got } = started({ holds: () => false })
  let givenBack = 0

  response.onResponse(200, 'OK', [])
  response.onShortPart(Buffer.from('short'))
  response.onContent(Buffer.from('long'), () => void (givenBack += 1))

  assert.deepEqual([got, givenBack], [['200', 'short', 'long'], 1])
  response.onEnd(['x', 'y'])
  assert.deepEqual(got.slice(3), ['end x,y'])
})

test('Early hints are passed on at once, and the response after them is held', async () => {
  const { response, got } = started()

  response.onResponse(103, 'Early Hints', [])
  assert.deepEqual(got, ['103'])
  response.onResponse(200, 'OK', [])
  response.onShortPart(Buffer.from('page'))
  assert.deepEqual(got, ['103'])

  response.onEnd(['x', 'y'])
  await turn()
  assert.deepEqual(got, ['103', 'complete', '200', 'page', 'end x,y'])
})

test('A held response is examined with all its content, and its buffers are free at once', async () => {
  let seen = ''
  const { response, got } = started({
    examine: async ({ status, content }) => {
      seen = `${status} ${String(content)}`
      return () => void got.push('the sign-in')
    },
  })
  const buffer = Buffer.from('one')

  response.onResponse(401, 'Unauthorized', [])
  response.onContent(buffer, () => void buffer.write('???'))
  response.onShortPart(buffer.fill('2'))
  buffer.fill('!')
  response.onEnd([])
  await turn()

  assert.equal(seen, '401 one222')
  assert.deepEqual(got, ['complete', 'the sign-in'], 'nothing of the response that was replaced')
})

test('A response whose examination fails is passed on', async () => {
  const { response, got } = started({ examine: () => Promise.reject(new Error('no store')) })

  response.onResponse(200, 'OK', [])
  response.onShortPart(Buffer.from('page'))
  response.onEnd([])
  await turn()

  assert.deepEqual(got, ['complete', '200', 'page', 'end '])
})

test('A response that breaks off while it is held is an error for the client, without its beginning', () => {
  const { response, got } = started()

  response.onResponse(200, 'OK', [])
  response.onShortPart(Buffer.from('half'))
  response.onError(new GatewayError('ERR_UPSTREAM_RESPONSE', 'it broke off'))

  assert.deepEqual(got, ['ERR_UPSTREAM_RESPONSE'])
})

test('A held response that cannot be passed on is an error, and its exchange is aborted', async () => {
  const { response, got } = started({}, true)
  let aborted: unknown
  response.onSend({ abort: (error: unknown) => void (aborted = error) } as never)

  response.onResponse(200, 'OK', [])
  response.onEnd([])
  await turn()

  assert.deepEqual(got, ['complete', 'ERR_INTERNAL'])
  assert.ok(aborted instanceof GatewayError)
})
