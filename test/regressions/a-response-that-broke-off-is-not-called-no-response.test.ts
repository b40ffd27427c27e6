import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionAdvice } from '../../src/core/connection-advice.ts'

// A response that had begun and then broke off was logged with the hint "It closed the connection
// without a response", so people looked for the wrong fault.
test('The advice about a response that broke off does not say that there was none', () => {
  const why = 'the upstream closed the connection'

  assert.match(connectionAdvice({ why, hasBegun: true }, 'url', 'ca_file'), /^it broke off a response that had begun/)
  assert.match(connectionAdvice({ why }, 'url', 'ca_file'), /^it closed the connection without a response/)
})
