import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { mediaTypeOf, readContent } from '../../src/http/read-content.ts'

function source(headers: Readonly<Record<string, string>> = {}) {
  const emitter = Object.assign(new EventEmitter(), { headers })
  return Object.assign(emitter, {
    receive: (...parts: string[]) => parts.map((part) => emitter.emit('data', Buffer.from(part))),
  })
}

test('content is read whole, in any number of parts', async () => {
  const request = source({ 'content-length': '10' })
  const content = readContent(request, 10)
  request.receive('01234', '56789')
  request.emit('end')

  assert.equal(String(await content), '0123456789')
})

test('content that is too long by its Content-Length is not read', async () => {
  const request = source({ 'content-length': '11' })

  assert.equal(await readContent(request, 10), 'too_large')
  assert.equal(request.listenerCount('data'), 0)
})

test('of content without a length, no more is kept than the limit', async () => {
  const request = source()
  const content = readContent(request, 10)

  assert.deepEqual(request.receive('01234', '567890', '1'), [true, true, false])
  request.emit('end')
  assert.equal(await content, 'too_large')
})

test('content is incomplete when the client closes the connection before its end', async () => {
  const request = source()
  const content = readContent(request, 10)
  request.receive('01234')
  request.emit('close')

  assert.equal(await content, 'incomplete')
})

for (const [field, type] of [
  [undefined, undefined],
  ['application/json', 'application/json'],
  [' Application/JSON ; charset=utf-8', 'application/json'],
  ['application/json;', 'application/json'],
  ['', 'malformed'],
  [';', 'malformed'],
  ['json', 'malformed'],
  ['application/', 'malformed'],
  ['application /json', 'malformed'],
  ['application/json text/plain', 'malformed'],
  ['application/json, text/plain', 'malformed'],
] as const)
  test(`the media type of Content-Type "${field}" is ${type}`, () => {
    assert.equal(mediaTypeOf({ headers: field === undefined ? {} : { 'content-type': field } }), type)
  })
