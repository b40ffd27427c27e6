import assert from 'node:assert/strict'
import fs from 'node:fs'
import { test } from 'node:test'
import { Lines } from '../../src/observe/writing-log.ts'

test('Writes into a shared pipe never exceed PIPE_BUF bytes', async (t) => {
  const write = t.mock.method(fs, 'write')
  const fd = fs.openSync('/dev/null', 'w')
  t.after(() => fs.closeSync(fd))
  const lines = new Lines({ fd, isShared: true }, () => {})

  for (let n = 0; n < 100; n += 1) lines.add(`${JSON.stringify({ n, sub: 'jürgen.grün'.repeat(20) })}\n`)
  assert.ok(await lines.flush(5000))

  const sizes = write.mock.calls.flatMap(({ arguments: [to, ...rest] }) =>
    to === fd ? [Number((rest as unknown[])[2])] : [],
  )
  assert.ok(sizes.length > 1)
  assert.ok(Math.max(...sizes) <= 4096, String(sizes))
})
