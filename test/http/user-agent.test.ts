import assert from 'node:assert/strict'
import { test } from 'node:test'
import { browserText } from '../../src/http/user-agent.ts'

const webkit = 'AppleWebKit/537.36 (KHTML, like Gecko)'

for (const [userAgent, expected] of [
  ['Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox 140 on Windows'],
  [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0`,
    'Edge 156 on Windows',
  ],
  [`Mozilla/5.0 (X11; Linux x86_64) ${webkit} Chrome/156.0.0.0 Safari/537.36`, 'Chrome 156 on Linux'],
  [`Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${webkit} Chrome/156.0.0.0 Safari/537.36`, 'Chrome 156 on ChromeOS'],
  [`Mozilla/5.0 (Linux; Android 10; K) ${webkit} Chrome/156.0.0.0 Mobile Safari/537.36`, 'Chrome 156 on Android'],
  [
    `Mozilla/5.0 (Linux; Android 10; K) ${webkit} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36`,
    'Samsung Internet 28 on Android',
  ],
  [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/156.0.0.0 Safari/537.36 OPR/120.0.0.0`,
    'Opera 120 on Windows',
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
    'Safari 26 on macOS',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1',
    'Safari 26 on iPhone',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/156.0.1 Mobile/15E148 Safari/604.1',
    'Chrome 156 on iPhone',
  ],
  ['curl/8.5.0', 'curl 8'],
  ['node', 'node'],
  ['Mozilla/5.0', 'Mozilla 5'],
  ['<script>alert(1)</script>', undefined],
  ['', undefined],
  [undefined, undefined],
] as const)
  test(`A person recognizes the browser: ${expected ?? `nothing in ${JSON.stringify(userAgent)}`}`, () =>
    assert.equal(browserText(userAgent), expected))

test('The time for a long User-Agent grows with its length only', () => {
  for (const text of ['Version/1', 'Mac OS X ', 'Mobile/1 ', 'a.', '1'])
    assert.equal(typeof browserText(`x${text.repeat(20_000)}`), 'string')
})
