import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesName, parseNamePattern } from '../../src/core/patterns.ts'

for (const [pattern, name, isMatch] of [
  ['JSESSIONID', 'JSESSIONID', true],
  ['JSESSIONID', 'jsessionid', true],
  ['JSESSIONID', 'JSESSIONID2', false],
  ['JSESSIONID*', 'JSESSIONID', true],
  ['JSESSIONID*', 'JSESSIONIDSSO', true],
  ['*session', 'django_session', true],
  ['*session', 'session_id', false],
  ['wp*in*', 'wordpress_logged_in_1', false],
  ['w*_*in*', 'wordpress_logged_in_1', true],
  ['a*a', 'a', false],
  ['a*a', 'aa', true],
  ['a*b*a', 'aba', true],
  ['a*ba*a', 'aba', false],
  ['.ASPX*', 'xASPXAUTH', false],
  ['*', '', true],
  ['**', 'x', true],
] as const)
  test(`The pattern ${pattern} ${isMatch ? 'matches' : 'does not match'} the name "${name}"`, () => {
    assert.equal(matchesName(parseNamePattern(pattern), name), isMatch)
  })
