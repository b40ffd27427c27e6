import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesPath, parsePathPattern } from '../../src/core/patterns.ts'

function matches(pattern: string, path: string): boolean {
  return matchesPath(parsePathPattern(pattern), path.slice(1).split('/'))
}

for (const [pattern, matching, others] of [
  ['/', ['/'], ['/a', '/a/']],
  ['/*', ['/', '/a', '/a/b/'], []],
  ['/a', ['/a'], ['/', '/a/', '/ab', '/A', '/a/b']],
  ['/a/', ['/a/'], ['/a', '/a/b']],
  ['/public/*', ['/public', '/public/', '/public/a/b'], ['/', '/publicity', '/Public/a', '/x/public/a']],
  ['/public/**', ['/public', '/public/a/b'], ['/publicity']],
  ['/*/edit', ['/a/edit'], ['/edit', '/a/b/edit', '/a/edit/']],
  [
    '/*.css',
    ['/a.css', '/a/b.css', '/a..css', '/.a.css'],
    ['/.css', '/a.CSS', '/a.css/', '/a.css/b', '/acss', '/a/.css'],
  ],
  ['*.min.js', ['/a.min.js'], ['/a.js', '/.min.js']],
  ['/a/*/*.css', ['/a/b/c.css', '/a/b/c/d.css'], ['/a/c.css', '/b/b/c.css', '/a//c.css', '/a/b']],
  ['/a/*/c/*', ['/a/b/c', '/a/b/c/d/e'], ['/a/c', '/a/b', '/a//c']],
] as const)
  test(`${pattern} matches ${matching.join(' ')} but not ${others.join(' ')}`, () => {
    for (const path of matching) assert.ok(matches(pattern, path), path)
    for (const path of others) assert.ok(!matches(pattern, path), path)
  })

for (const text of [
  '',
  'a',
  '*',
  '/a?b',
  '/a#b',
  '/a\\b',
  '/%61',
  '/a;b',
  '/a b',
  '/é',
  '/..',
  '/a/./b',
  '//',
  '/a//b',
  '/a*',
  '/*.',
  '/*.css/a',
  '/*-a.css',
  '/a*.css',
  '*css',
  '/*.c*',
  '/**/a',
  '/a/***',
])
  test(`${JSON.stringify(text)} is not a valid path pattern`, () => {
    assert.throws(() => parsePathPattern(text), SyntaxError)
  })
