import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crossSiteReason } from '../../src/gate/cross-site.ts'
import { upstream } from '../rules/configs.ts'

const ours = 'https://orders.example.com'
const form = {
  method: 'POST',
  isUpgrade: false,
  secFetchSite: undefined as string | undefined,
  origin: undefined as string | undefined,
  // A proxy before the gateway that is not believed has taken TLS off.
  forwarded: { clientAddress: '192.0.2.7', proto: 'http', host: 'orders.example.com', forwardedFor: '192.0.2.7' },
} as const
const socket = { ...form, method: 'GET', isUpgrade: true } as const
const portal = 'https://portal.example.com'

for (const [what, request, passes] of [
  ['a form of ours', { ...form, secFetchSite: 'same-origin', origin: ours }, true],
  ['a form of ours that does not say where it is from', { ...form, secFetchSite: 'same-origin', origin: 'null' }, true],
  ['a page that a person sends again', { ...form, secFetchSite: 'none' }, true],
  ['a form of ours in an older browser', { ...form, origin: ours }, true],
  ['a program', form, true],
  ['a form of a neighbour', { ...form, secFetchSite: 'same-site', origin: 'https://wiki.example.com' }, false],
  ['a form elsewhere', { ...form, secFetchSite: 'cross-site', origin: 'https://evil.example' }, false],
  ['a form that comes by way of another site', { ...form, secFetchSite: 'cross-site', origin: ours }, false],
  ['a form elsewhere without an origin', { ...form, secFetchSite: 'cross-site' }, false],
  ['a word that nobody knows', { ...form, secFetchSite: 'sideways', origin: ours }, false],
  ['two words', { ...form, secFetchSite: 'same-origin, cross-site' }, false],
  ['no word', { ...form, secFetchSite: '' }, false],
  ['a form elsewhere in an older browser', { ...form, origin: 'https://evil.example' }, false],
  ['a form over another scheme', { ...form, origin: 'http://orders.example.com' }, false],
  ['a form of another port', { ...form, origin: `${ours}:8443` }, false],
  ['a form of a host that begins like ours', { ...form, origin: `${ours}.evil.example` }, false],
  ['a form in a sandbox', { ...form, origin: 'null' }, false],
  ['two origins', { ...form, origin: `${ours}, https://evil.example` }, false],
  ['a PUT of a script elsewhere', { ...form, method: 'PUT', origin: 'https://evil.example' }, false],
  ['a method that nobody knows', { ...form, method: 'FROBNICATE', origin: 'https://evil.example' }, false],
  ['a link elsewhere', { ...form, method: 'GET', secFetchSite: 'cross-site' }, true],
  ['a look at the head', { ...form, method: 'HEAD', secFetchSite: 'cross-site' }, true],
  ['a question whether one may ask', { ...form, method: 'OPTIONS', origin: 'https://evil.example' }, true],
  ['a WebSocket of ours', { ...socket, origin: ours }, true],
  ['a WebSocket of a program', socket, true],
  ['a WebSocket elsewhere', { ...socket, origin: 'https://evil.example' }, false],
  ['a WebSocket of a neighbour', { ...socket, secFetchSite: 'same-site', origin: portal }, false],
  ['a WebSocket in a sandbox', { ...socket, origin: 'null' }, false],
] as const)
  test(`${what} ${passes ? 'may act' : 'may not act'} in the name of who is signed in`, () => {
    assert.equal(crossSiteReason(request, upstream()) === undefined, passes)
  })

test('the host that was asked for is the same origin too, and no other', () => {
  const request = { ...form, forwarded: { ...form.forwarded, host: 'stock.example.com:8443' } }

  assert.equal(crossSiteReason({ ...request, origin: 'https://stock.example.com:8443' }, upstream()), undefined)
  assert.notEqual(crossSiteReason({ ...request, origin: 'https://stock.example.com' }, upstream()), undefined)
})

test('trusted origins may act, with and without the word of the browser; others may not', () => {
  const trusting = upstream({ trustedOrigins: [portal] })

  assert.equal(crossSiteReason({ ...form, secFetchSite: 'same-site', origin: portal }, trusting), undefined)
  assert.equal(crossSiteReason({ ...socket, origin: portal }, trusting), undefined)
  assert.notEqual(crossSiteReason({ ...form, origin: `${portal}.evil.example` }, trusting), undefined)
  assert.notEqual(crossSiteReason({ ...form, secFetchSite: 'same-site' }, trusting), undefined)
  assert.equal(crossSiteReason({ ...form, origin: 'null' }, upstream({ trustedOrigins: 'any' })), undefined)
})

test('the log reads whose page it was, and nothing that somebody made up', () => {
  const why = (origin: string) => crossSiteReason({ ...form, origin }, upstream())

  assert.equal(why('https://evil.example:8443'), 'a page of https://evil.example:8443 makes it')
  assert.equal(why('x\u001b[2J'), 'a page of another origin makes it')
  assert.equal(why(`https://${'a'.repeat(500)}`), 'a page of another origin makes it')
  assert.equal(
    crossSiteReason({ ...form, secFetchSite: 'same-site', origin: portal }, upstream()),
    `a page of ${portal} makes it, which is same-site`,
  )
})
