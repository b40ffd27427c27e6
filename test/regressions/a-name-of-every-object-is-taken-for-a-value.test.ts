import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { fillPlaceholders } from '../../src/config/end-session-params.ts'
import { knownLength } from '../../src/config/header-size.ts'
import { parseClaimPath } from '../../src/core/claims.ts'
import { ownMember } from '../../src/core/json.ts'
import { arrived } from '../../src/explain/request.ts'
import { requestFields } from '../../src/transport/http2/request-fields.ts'
import { startWorld } from '../support/world.ts'

const names = ['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__', '__defineGetter__']

test('An application over HTTP/2 gets a field that is named like a member of every object', async (t) => {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer((req, res) => {
    seen.push(req.headers)
    res.end()
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    upstreamSettings: 'protocol: h2c\n    rules: [{ path: /*, access: public }]',
  })

  for (const name of ['constructor', 'valueof', 'tostring'])
    await fetch(`${world.url}/`, { headers: { [name]: 'mine' } })

  assert.deepEqual(
    seen.map((headers, index) => headers[['constructor', 'valueof', 'tostring'][index] ?? '']),
    ['mine', 'mine', 'mine'],
  )
})

for (const name of names)
  test(`A member of every object is no value: ${name}`, () => {
    assert.equal(ownMember({ google: 'https://accounts.google.com' }, name), undefined)
    const rawHeaders = ['Host', 'a', name, 'mine']
    const { headers } = arrived({ method: 'GET', target: '/', rawHeaders, peer: undefined } as never, false)
    assert.deepEqual(Object.entries(headers), [
      ['host', 'a'],
      [name.toLowerCase(), 'mine'],
    ])
    assert.equal(knownLength(parseClaimPath(`"${name}"`), 100), undefined)
    assert.equal(fillPlaceholders(`{${name}}`, { state: 's' }), undefined)
  })

test('A field of HTTP/2 has its own value only', () => {
  for (const name of ['constructor', 'valueof'])
    assert.equal(
      requestFields({ method: 'GET', path: '/', headers: [name, 'mine'], identity: [] } as never, 'http')[name],
      'mine',
    )
})
