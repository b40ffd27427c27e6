import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPath, startLane } from '../corpus/lanes.ts'
import { exchangeRaw } from '../support/raw-exchange.ts'

for (const [what, lines] of [
  ['two Hosts', 'Host: {host}\r\nHost: {host}\r\n'],
  ['no Host', 'X-Host: {host}\r\n'],
  ['an invalid Host', 'Host: a@b\r\n'],
  ['a coding of HTTP/1.0', 'Host: {host}\r\nTransfer-Encoding: gzip, chunked\r\n'],
] as const)
  test(`Bytes that follow a request with ${what} are not read as a request`, async (t) => {
    const { port, host, upstream } = await startLane(t)

    const behind = `GET ${openPath} HTTP/1.1\r\nHost: ${host}\r\n\r\n`
    const head = `GET ${openPath} HTTP/1.1\r\n${lines.replaceAll('{host}', host)}\r\n`
    const { statuses } = await exchangeRaw(port, `${head}${lines.includes('chunked') ? '0\r\n\r\n' : ''}${behind}`)

    assert.deepEqual(statuses, [400])
    assert.deepEqual(upstream.seen, [])
  })
