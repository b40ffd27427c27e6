import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isFromThisSite, type EndpointRequest } from '../../src/http/endpoint-request.ts'

const nothing: EndpointRequest = {
  method: 'GET',
  url: '/.gatehouse/sign-out',
  query: new URLSearchParams(),
  form: new URLSearchParams(),
  proto: 'https',
  host: 'orders.example.com',
  isByPerson: true,
  isPage: true,
  isFrame: false,
  embeddingPage: undefined,
  home: '/',
  requestId: 'r-1',
  acceptLanguage: undefined,
  cookie: undefined,
  secFetchSite: undefined,
  secFetchMode: undefined,
  secFetchDest: undefined,
  isPrefetch: false,
  origin: undefined,
  referer: undefined,
  externalUrl: new URL('https://orders.example.com'),
  applicationCookies: [],
  cause: { request: 'r-1', client: '192.0.2.7' },
}
const ours = 'https://orders.example.com'

for (const [what, said, fromHere] of [
  ['a link on a page of ours', { secFetchSite: 'same-origin' }, true],
  ['a bookmark', { secFetchSite: 'none' }, true],
  ['a form that nobody has seen', { method: 'POST', secFetchSite: 'none' }, false],
  ['a link elsewhere', { secFetchSite: 'cross-site' }, false],
  ['a page of a neighbour', { secFetchSite: 'same-site' }, false],
  ['a page elsewhere that pretends with another header', { secFetchSite: 'cross-site', origin: ours }, false],
  ['a word that nobody knows', { secFetchSite: 'sideways' }, false],
  ['two words', { secFetchSite: 'same-origin, cross-site' }, false],
  ['a form of ours in an older browser', { method: 'POST', origin: ours }, true],
  ['a form elsewhere in an older browser', { method: 'POST', origin: 'https://evil.example' }, false],
  ['a form that begins like ours', { method: 'POST', origin: `${ours}.evil.example` }, false],
  ['a form over another scheme', { method: 'POST', origin: 'http://orders.example.com' }, false],
  ['a form of another port', { method: 'POST', origin: `${ours}:8443` }, false],
  ['a form in a sandbox', { method: 'POST', origin: 'null' }, false],
  ['a link of ours in an older browser', { referer: `${ours}/orders?page=2` }, true],
  ['a link elsewhere in an older browser', { referer: 'https://evil.example/?https://orders.example.com' }, false],
  ['a link from nowhere that can be read', { referer: 'orders.example.com' }, false],
  ['a program', { method: 'POST' }, true],
] satisfies readonly (readonly [string, Partial<EndpointRequest>, boolean])[])
  test(`a sign-out ${fromHere ? 'is carried out' : 'asks the person first'}: ${what}`, () => {
    assert.equal(isFromThisSite({ ...nothing, ...said }), fromHere)
  })
