import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionAdvice } from '../../src/core/connection-advice.ts'
import { reason } from '../../src/core/errors.ts'
import { redisAdvice } from '../../src/session/store/redis/advice.ts'

for (const [why, advice] of [
  [
    'self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)',
    /^its certificate is self-signed: set a to this certificate \(a file that is set has another\)/,
  ],
  ['self-signed certificate in certificate chain (SELF_SIGNED_CERT_IN_CHAIN)', /^set a to the authority/],
  [
    'unable to verify the first certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
    /^set a to the authority .*\(a file that is set does not contain it\)/,
  ],
] as const)
  test(`The advice about a certificate says what to trust: ${why}`, () => {
    assert.match(connectionAdvice({ why }, 'url', 'a'), advice)
  })

for (const [why, advice] of [
  ['SSL routines:ssl3_read_bytes:tlsv13 alert certificate required', /set client_certificate beside url/],
  ['the upstream does not speak HTTP/2, which protocol of the upstream requires: reset', /^remove protocol beside url/],
  ['socket hang up', /closed the connection .*check its log, whether it speaks TLS as url says/],
  ['connect ECONNREFUSED /run/app.sock', /^no program listens on this socket: check that it runs$/],
  ["IP: 127.0.0.1 is not in the cert's list", /in server_name/],
] as const)
  test(`The advice names the setting that helps: ${why}`, () => {
    assert.match(connectionAdvice({ why }, 'url', 'a'), advice)
  })

test('The reason of a rejected certificate does not advise an option of Node.js', () => {
  const error = new Error('self-signed certificate; if the root CA is installed locally, try running Node.js with X')

  assert.equal(reason(Object.assign(error, { code: 'DEPTH_ZERO' })), 'self-signed certificate (DEPTH_ZERO)')
})

test('The advice about a Redis that does not respond names the scheme first', () => {
  assert.match(redisAdvice({ why: 'connect ETIMEDOUT' }), /^compare the scheme redis:\/\/ or rediss:\/\//)
})
