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
