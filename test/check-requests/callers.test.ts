import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../src/core/clock.ts'
import { hashSecret } from '../../src/core/scrypt-hash.ts'
import { ClientCertificates } from '../../src/tokens/client-certificates.ts'
import { issueCertificates } from '../support/certificates.ts'
import { folderWith } from '../support/command-line.ts'
import { clientCertOf, startAskedWorld } from './asking.ts'

test('A service account is checked for another proxy, and its secret is not for the application', async (t) => {
  const line = `backup:${await hashSecret('a secret', { ln: 14, r: 8, p: 1 })}\n`
  const file = join(folderWith(t, { 'accounts.txt': line }), 'accounts.txt')
  const world = await startAskedWorld(t, {
    wiki: `service_accounts: { file: "${file}" }`,
    wikiRules: '- { path: /wiki/export/*, service_accounts: true }',
  })
  const ask = (secret: string) =>
    world.ask(
      world.described({
        ...{ 'X-Forwarded-Uri': '/wiki/export/x', Accept: undefined },
        Authorization: `Basic ${Buffer.from(`backup:${secret}`).toString('base64')}`,
      }),
    )

  const passed = await ask('a secret')
  const refused = await ask('wrong')

  assert.deepEqual([passed.status, passed.headers['x-remote-user']], [200, 'service-account/backup'])
  assert.ok(String(passed.headers['x-envoy-auth-headers-to-remove']).split(', ').includes('authorization'))
  assert.deepEqual(
    [refused.status, refused.headers['www-authenticate']],
    [401, 'Basic realm="account or key", charset="UTF-8"'],
  )
  const [event] = (world.replicas[0]?.log ?? []).filter(({ message }) => message === 'caller.refused')
  assert.deepEqual([event?.fields['account'], event?.fields['asked_by']], ['backup', '127.0.0.1'])
  assert.equal(world.replicas[0]?.access.at(-1)?.['caller'], 'service_account')
})

test('The certificate in a check request counts only where the proxy that asks sets it', async (t) => {
  const clientCert = clientCertOf(issueCertificates().client.cert ?? '')
  const world = await startAskedWorld(t, {
    wiki: 'client_cert_header: true',
    wikiRules: '- { path: /wiki/api/*, client_certificates: true, unauthenticated: 401 }',
  })
  const ask = (changes: Readonly<Record<string, string>>) =>
    world.ask(world.described({ 'X-Forwarded-Uri': '/wiki/api/x', ...changes }))

  const passed = await ask({ 'Client-Cert': clientCert })

  assert.deepEqual([passed.status, passed.headers['x-remote-user']], [200, 'certificate/CN=client'])
  const removed = String(passed.headers['x-envoy-auth-headers-to-remove']).split(', ')
  assert.ok(removed.includes('client-cert') && removed.includes('client-cert-chain'))
  assert.equal((await ask({})).status, 401)

  // Such a proxy passes on what its client writes. The setting of a proxy in front says nothing.
  const parts = { isAsked: false, issuer: 'https://orders.example.com', clock: systemClock }
  for (const readsHeader of [true, false]) {
    const certificates = new ClientCertificates({ ...parts, readsHeader })
    for (const clientCertHeader of [true, false]) {
      const asked = certificates.identify({ clientCert, isAsked: 'once' }, { clientCertHeader })
      assert.equal(asked?.kind, clientCertHeader ? 'accepted' : undefined)
      assert.equal(
        certificates.identify({ clientCert }, { clientCertHeader })?.kind,
        readsHeader ? 'accepted' : undefined,
      )
    }
  }
})

test('A key that a program sends to an upstream with forward_auth by mistake is not for the application', async (t) => {
  const world = await startAskedWorld(t, { wikiRules: '- { path: /wiki/open/*, access: public }' })
  const ask = (path: string, authorization: string) =>
    world.ask(world.described({ 'X-Forwarded-Uri': path, Accept: undefined, Authorization: authorization }))
  const key = `Bearer ghk_${'k'.repeat(64)}`

  const open = await ask('/wiki/open/x', key)

  assert.equal(open.status, 200)
  assert.ok(String(open.headers['x-envoy-auth-headers-to-remove']).split(', ').includes('authorization'))
  const own = await ask('/wiki/open/x', 'Bearer of-the-application')
  assert.ok(!String(own.headers['x-envoy-auth-headers-to-remove']).split(', ').includes('authorization'))
  assert.equal((await ask('/wiki/x', key)).status, 401)
})
