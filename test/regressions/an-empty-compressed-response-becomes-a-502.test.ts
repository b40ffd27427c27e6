import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fetchWhole, httpUpstream, startGateway } from '../proxy/support.ts'

const fields = { 'content-type': 'text/html', 'content-encoding': 'gzip' }

for (const [how, more] of [
  ['with its length', { 'content-length': '0' }],
  ['in chunks', {}],
] as const)
  test(`A redirect with a content coding and without content is passed on when content is rewritten: ${how}`, async (t) => {
    const upstream = await httpUpstream(t, (_, res) =>
      res.writeHead(302, { ...fields, ...more, location: '/next' }).end(),
    )
    const { origin } = await startGateway(t, upstream.port, { upstream: { rewriteContent: true } })

    const { status, headers, body } = await fetchWhole(origin)

    assert.deepEqual([status, headers['location'], body], [302, '/next', ''])
  })
