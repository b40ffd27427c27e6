import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionAdvice } from '../../src/core/connection-advice.ts'

for (const [why, advice] of [
  [
    'self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)',
    /^its certificate is self-signed: set a to this certificate/,
  ],
  ['self-signed certificate in certificate chain (SELF_SIGNED_CERT_IN_CHAIN)', /^set a to the authority/],
  ['unable to verify the first certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE)', /^set a to the authority/],
] as const)
  test(`The advice about a certificate says what to trust: ${why}`, () => {
    assert.match(connectionAdvice({ why }, 'url', 'a'), advice)
  })

for (const [why, advice] of [
  ['SSL routines:ssl3_read_bytes:tlsv13 alert certificate required', /set client_certificate beside url/],
  ['the upstream does not speak HTTP/2, which protocol of the upstream requires: reset', /^remove protocol beside url/],
  ['connect ECONNREFUSED /run/app.sock', /^no program listens on this socket: check that it runs$/],
  ["IP: 127.0.0.1 is not in the cert's list", /in server_name/],
] as const)
  test(`The advice names the setting that helps: ${why}`, () => {
    assert.match(connectionAdvice({ why }, 'url', 'a'), advice)
  })
