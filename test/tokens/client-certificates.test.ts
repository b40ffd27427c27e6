import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { ClientCertificates, recordOfCertificate } from '../../src/tokens/client-certificates.ts'
import { issueCertificates } from '../support/certificates.ts'

const certificate = new X509Certificate(issueCertificates().client.cert)
const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
const header = `:${certificate.raw.toString('base64')}:`
const here = { clientCertHeader: false }
const socket = (authorized: boolean) => ({
  ...{ authorized, authorizationError: 'CERT_HAS_EXPIRED' },
  getPeerX509Certificate: () => certificate,
})

function at(now: number, parts: { readonly isAsked?: boolean; readonly readsHeader?: boolean } = {}) {
  const clock = { now: () => now }
  return new ClientCertificates({ isAsked: true, readsHeader: true, issuer: 'https://a.example', clock, ...parts })
}

test('A certificate counts from the beginning to the end of its validity', () => {
  for (const [now, kind] of [
    [from - 1, 'refused'],
    [from, 'accepted'],
    [to - 1, 'accepted'],
    [to, 'refused'],
  ] as const) {
    assert.equal(at(now).identify({ clientCert: header }, here)?.kind, kind)
    assert.equal(at(now).identify({ tls: socket(true) }, here)?.kind, kind)
  }
})

test('A certificate that TLS does not accept is refused', () => {
  assert.equal(at(from).identify({ tls: socket(false) }, here)?.kind, 'refused')
})

test('Nothing is read where it was not asked for, and the header of a proxy comes first', () => {
  const without = { isAsked: false, readsHeader: false }
  assert.equal(at(from, without).identify({ tls: socket(true), clientCert: header }, here), undefined)
  assert.equal(at(from, { readsHeader: false }).identify({ clientCert: header }, here), undefined)
  assert.equal(at(from).identify({ tls: socket(true), clientCert: ':AAAA:' }, here)?.kind, 'refused')
  assert.equal(at(from).identify({}, here), undefined)
})

test('A proxy that asks about a request is believed only for an upstream with client_cert_header', () => {
  const asked = { clientCert: header, isAsked: 'once' }

  assert.equal(at(from).identify(asked, here), undefined)
  assert.equal(at(from, { readsHeader: false }).identify(asked, { clientCertHeader: true })?.kind, 'accepted')
})

test('A header is one certificate, or it is refused', () => {
  for (const text of [
    '',
    header.slice(1),
    header.slice(0, -1),
    `${header}, ${header}`,
    ':?:',
    `:${'A'.repeat(16 * 1024)}:`,
  ])
    assert.equal(at(from).identify({ clientCert: text }, here)?.kind, 'refused', text.slice(0, 20))
})

test('A caller has the names of its certificate, in a form of their own', () => {
  const identity = at(from).identify({ clientCert: header }, here)
  assert.ok(identity?.kind === 'accepted')

  const { iss, sub, claims } = identity.record
  assert.deepEqual([iss, sub], ['https://a.example', 'certificate/CN=client'])
  const { cn, dns } = claims['certificate'] as { readonly cn: unknown; readonly dns: unknown }
  assert.deepEqual([cn, dns], [['client'], ['gatehouse']])
})

for (const [what, names, sub] of [
  ['a subject', { subject: 'CN=a', uri: ['spiffe://a'], dns: ['a.example'] }, 'certificate/CN=a'],
  ['no subject', { subject: '', uri: ['spiffe://a', 'spiffe://b'], dns: ['a.example'] }, 'certificate/spiffe://a'],
  ['host names only', { subject: '', uri: [], dns: ['a.example', 'b.example'] }, 'certificate/a.example'],
  ['no name', { subject: '', uri: [], dns: [] }, 'certificate/ab12'],
] as const)
  test(`A caller whose certificate has ${what} is called ${sub}`, () => {
    const claims = { ...{ cn: [], o: [], ou: [], email: [], ip: [], issuer: '', serial: '' }, ...names, sha256: 'ab12' }

    assert.equal(recordOfCertificate(claims, 'https://a.example').sub, sub)
  })
