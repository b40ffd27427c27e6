import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crossSiteReason } from '../../src/gate/cross-site.ts'
import { upstream } from './rules/configs.ts'

const ours = 'https://orders.example.com'
const form = {
  method: 'POST',
  isUpgrade: false,
  secFetchSite: undefined as string | undefined,
  origin: undefined as string | undefined,
  // An untrusted proxy in front of the gateway terminates TLS.
  forwarded: { clientAddress: '192.0.2.7', proto: 'http', host: 'orders.example.com', forwardedFor: '192.0.2.7' },
} as const
const socket = { ...form, method: 'GET', isUpgrade: true } as const
const portal = 'https://portal.example.com'

for (const [what, request, passes] of [
  ['a form of ours', { ...form, secFetchSite: 'same-origin', origin: ours }, true],
  ['a form of this site with the origin "null"', { ...form, secFetchSite: 'same-origin', origin: 'null' }, true],
  ['a form that the person submits again', { ...form, secFetchSite: 'none' }, true],
  ['a form of this site in an older browser', { ...form, origin: ours }, true],
  ['a form from a program', form, true],
  ['a form of a neighbouring host', { ...form, secFetchSite: 'same-site', origin: 'https://wiki.example.com' }, false],
  ['a form of another site', { ...form, secFetchSite: 'cross-site', origin: 'https://evil.example' }, false],
  ['a form that is redirected by another site', { ...form, secFetchSite: 'cross-site', origin: ours }, false],
  ['a form of another site without an origin', { ...form, secFetchSite: 'cross-site' }, false],
  ['an unknown value of Sec-Fetch-Site', { ...form, secFetchSite: 'sideways', origin: ours }, false],
  ['two values of Sec-Fetch-Site', { ...form, secFetchSite: 'same-origin, cross-site' }, false],
  ['an empty Sec-Fetch-Site', { ...form, secFetchSite: '' }, false],
  ['a form of another site in an older browser', { ...form, origin: 'https://evil.example' }, false],
  ['a form over another scheme', { ...form, origin: 'http://orders.example.com' }, false],
  ['a form of another port', { ...form, origin: `${ours}:8443` }, false],
  ['a form of a host that begins like this one', { ...form, origin: `${ours}.evil.example` }, false],
  ['a form in a sandboxed frame', { ...form, origin: 'null' }, false],
  ['two origins', { ...form, origin: `${ours}, https://evil.example` }, false],
  ['a PUT of a script on another site', { ...form, method: 'PUT', origin: 'https://evil.example' }, false],
  ['an unknown method', { ...form, method: 'FROBNICATE', origin: 'https://evil.example' }, false],
  ['a link on another site', { ...form, method: 'GET', secFetchSite: 'cross-site' }, true],
  ['a HEAD request', { ...form, method: 'HEAD', secFetchSite: 'cross-site' }, true],
  ['a preflight request', { ...form, method: 'OPTIONS', origin: 'https://evil.example' }, true],
  ['a WebSocket of this site', { ...socket, origin: ours }, true],
  ['a WebSocket of a program', socket, true],
  ['a WebSocket of another site', { ...socket, origin: 'https://evil.example' }, false],
  ['a WebSocket of a neighbouring host', { ...socket, secFetchSite: 'same-site', origin: portal }, false],
  ['a WebSocket in a sandboxed frame', { ...socket, origin: 'null' }, false],
] as const)
  test(`A request ${passes ? 'may act' : 'may not act'} in the name of the signed-in person: ${what}`, () => {
    assert.equal(crossSiteReason(request, upstream()) === undefined, passes)
  })

test('The requested host counts as the same origin, other hosts do not', () => {
  const request = { ...form, forwarded: { ...form.forwarded, host: 'stock.example.com:8443' } }

  assert.equal(crossSiteReason({ ...request, origin: 'https://stock.example.com:8443' }, upstream()), undefined)
  assert.notEqual(crossSiteReason({ ...request, origin: 'https://stock.example.com' }, upstream()), undefined)
})

test('Trusted origins may act with and without Sec-Fetch-Site, other origins may not', () => {
  const trusting = upstream({ trustedOrigins: [portal] })

  assert.equal(crossSiteReason({ ...form, secFetchSite: 'same-site', origin: portal }, trusting), undefined)
  assert.equal(crossSiteReason({ ...socket, origin: portal }, trusting), undefined)
  assert.notEqual(crossSiteReason({ ...form, origin: `${portal}.evil.example` }, trusting), undefined)
  assert.notEqual(crossSiteReason({ ...form, secFetchSite: 'same-site' }, trusting), undefined)
  assert.equal(crossSiteReason({ ...form, origin: 'null' }, upstream({ trustedOrigins: 'any' })), undefined)
})

test('The log names the origin of the page, and never quotes an invalid origin', () => {
  const why = (origin: string) => crossSiteReason({ ...form, origin }, upstream())

  assert.equal(why('https://evil.example:8443'), 'a page of https://evil.example:8443 made the request')
  assert.equal(why('x\u001b[2J'), 'a page of another origin made the request')
  assert.equal(why(`https://${'a'.repeat(500)}`), 'a page of another origin made the request')
  assert.equal(
    crossSiteReason({ ...form, secFetchSite: 'same-site', origin: portal }, upstream()),
    `a page of ${portal} made the request (same-site)`,
  )
})
