import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readResponse, startHttp2World } from '../support/http2.ts'

// The gateway reset the stream of a request that was not complete before it had sent the trailer
// section of its response. A client of gRPC then has no status.
test('A response that ends before its request keeps its trailers over HTTP/2', async (t) => {
  const world = await startHttp2World(t, (_req, res) => {
    res.writeHead(200, { Trailer: 'X-Sum' })
    res.write('early')
    res.addTrailers({ 'X-Sum': '7' })
    res.end()
  })
  const stream = world.connect().request({ ':method': 'POST', ':path': '/public/x' })
  stream.write('the beginning')

  const { body, trailers } = await readResponse(stream)

  assert.deepEqual([body, trailers['x-sum']], ['early', '7'])
})
