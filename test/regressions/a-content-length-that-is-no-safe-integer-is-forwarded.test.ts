import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPath, startLane } from '../corpus/lanes.ts'
import { exchangeRaw } from '../support/raw-exchange.ts'

for (const length of ['9007199254740993', '18446744073709551615', '0000000000000005'])
  test(`A Content-Length of ${length} is not forwarded, because recipients may read it as different numbers`, async (t) => {
    const { port, host, upstream } = await startLane(t)

    const head = `POST ${openPath} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${length}\r\n\r\n`
    const { statuses, end } = await exchangeRaw(port, `${head}hello`)

    assert.deepEqual([statuses, end], [[400], 'closed'])
    assert.deepEqual(upstream.seen, [])
  })
