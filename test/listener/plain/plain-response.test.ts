import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { PlainRequest } from '../../../src/listener/plain/plain-request.ts'
import { PlainResponse } from '../../../src/listener/plain/plain-response.ts'
import { plainRequestHead, type RequestHead } from '../../../src/listener/plain/request-head.ts'
import { upstreamError } from '../../../src/transport/upstream-error.ts'

test('A response with an invalid field is never written, and counts as an invalid response of the upstream', () => {
  const socket = { write: () => assert.fail() } as unknown as Socket
  const connection = {
    socket,
    keepAliveFields: '',
    mayContinue: true,
    responded() {},
    holdContent() {},
    replay() {},
  }
  const head = plainRequestHead(Buffer.from('GET / HTTP/1.1\r\nHost: h'), 23) as RequestHead
  for (const [name, value] of [
    ['X-A', 'a\r\nX-Evil: 1'],
    ['X-A\r\nX-Evil', '1'],
    ['X A', '1'],
    ['X-A', 'a\0b'],
  ] as const) {
    const response = new PlainResponse(connection, new PlainRequest(connection, head))
    assert.throws(
      () => response.writeHead(200, 'OK', ['Content-Type', 'text/plain', name, value]),
      (error) => upstreamError(error).code === 'ERR_UPSTREAM_RESPONSE',
    )
    assert.equal(response.headersSent, false)
    assert.throws(() => response.setHeader(name, value), TypeError)
  }
})
