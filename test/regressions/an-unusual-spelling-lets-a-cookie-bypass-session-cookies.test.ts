import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseNamePattern } from '../../src/core/patterns.ts'
import { fetchWhole, httpUpstream, startGateway } from '../proxy/support.ts'

const sessionCookies = ['JSESSIONID', 'wordpress_*', 'PHPSESSID'].map(parseNamePattern)

const cookie = { name: 'JSESSIONID', value: 'own', domain: 'orders.example.com', hostOnly: true, path: '/' } as const

// Each of them is JSESSIONID, PHPSESSID or wordpress_x=planted for some server.
const planted = [
  'wordpress.x=planted',
  'wordpress x=planted',
  'wordpress[x=planted',
  'wordpress%5Fx=planted',
  'wordpress%2ex=planted',
  'PHPSESSID[0]=planted',
  '%50HPSESSID=planted',
  'a=b, JSESSIONID=planted',
  'a=b JSESSIONID=planted',
  'a=b,JSESSIONID =planted',
]

for (const text of planted)
  test(`An upstream whose cookies are kept does not get "${text}" from a browser`, async (t) => {
    const upstream = await httpUpstream(t, (req, res) => res.end(req.headers.cookie))
    const { origin } = await startGateway(t, upstream.port, {
      upstream: { sessionCookies },
      pass: { cookies: [cookie] },
    })

    const { body } = await fetchWhole(origin, { headers: { cookie: `theme=dark; ${text}; c=1, 2 3` } })

    assert.equal(body, 'theme=dark; c=1, 2 3; JSESSIONID=own')
  })

test('A browser cannot make a server read kept cookies as a part of another cookie (RFC 2109)', async (t) => {
  const upstream = await httpUpstream(t, (req, res) => res.end(req.headers.cookie))
  const { origin } = await startGateway(t, upstream.port, { upstream: { sessionCookies }, pass: { cookies: [cookie] } })

  const { body } = await fetchWhole(origin, { headers: { cookie: '$Version=1; a="b; $Path=/; c=d' } })

  assert.equal(body, 'a="b; c=d; JSESSIONID=own')
})

test('A cookie that the application itself spells in an odd way is kept too, and comes back', async (t) => {
  const upstream = await httpUpstream(t, (_, res) => res.setHeader('Set-Cookie', 'wordpress.x=1').end())
  const kept: string[] = []
  const { origin } = await startGateway(t, upstream.port, {
    upstream: { sessionCookies },
    keepCookies: async (_session, _upstream, cookies) => void kept.push(...cookies.kept.map(({ name }) => name)),
  })

  const { headers } = await fetchWhole(origin)

  assert.deepEqual([headers['set-cookie'], kept], [undefined, ['wordpress.x']])
})
