import assert from 'node:assert/strict'
import { test } from 'node:test'
import { translateRoute } from '../../packages/import/oauth2-proxy/oauth2-proxy-rules.ts'
import { matchesPath, parsePathPattern } from '../../src/core/patterns.ts'

for (const [route, paths, methods] of [
  ['^/', '/*'],
  ['^/$', '/'],
  ['^/.*', '/*'],
  ['^/health$', '/health'],
  ['GET=^/health$', '/health', ['GET']],
  ['=^/health$', '/health'],
  ['^/robots\\.txt$', '/robots.txt'],
  ['^/robots.txt$', '/robots.txt'],
  ['^\\/static\\/', '/static/ /static/*/*'],
  ['^/static/.*$', '/static/ /static/*/*'],
  ['^/static(/.*)?$', '/static/*'],
  ['^/api/v1', '/api/v1/*'],
] as const)
  test(`${route} becomes ${paths}`, () => {
    const translated = translateRoute(route)

    assert.ok('paths' in translated, JSON.stringify(translated))
    assert.deepEqual(translated.paths, paths.split(' '))
    assert.deepEqual(translated.methods, methods)
  })

for (const route of [
  '/static/',
  '^$',
  'robots.txt',
  '^/(a|b)/',
  '^/a+/',
  '^/[a-z]/',
  '^/a|^/b',
  '^/a.*',
  '^/a?$',
  '^/\\w+$',
  '^.*/public$',
  'GET!=^/admin',
  '!=^/admin',
  '^(?i)/a',
  '^/a//b',
  '',
])
  test(`"${route}" is not a path and opens no path`, () => {
    assert.ok('why' in translateRoute(route))
  })

test('Rules never match more than their pattern', () => {
  const paths = ['/', '/a', '/a/', '/a/b', '/a/b/c', '/ab', '/a-b', '/b', '/a.b', '/a/b.txt', '/axb']
  for (const route of [
    '^/',
    '^/$',
    '^/a',
    '^/a$',
    '^/a/',
    '^/a/.*',
    '^/a/.*$',
    '^/a(/.*)?$',
    '^/a/b',
    '^/a.b$',
    '^/a/b.txt$',
  ]) {
    const translated = translateRoute(route)
    assert.ok('paths' in translated, route)
    const patterns = translated.paths.map(parsePathPattern)
    const isOpened = (path: string) => patterns.some((pattern) => matchesPath(pattern, path.slice(1).split('/')))
    const opened = paths.filter(isOpened)
    assert.deepEqual(
      opened.filter((path) => !new RegExp(route).test(path)),
      [],
      route,
    )
    assert.ok(opened.length > 0, route)
  }
})
