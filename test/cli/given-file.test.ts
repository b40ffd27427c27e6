import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { readLines } from '../../src/cli/given-file.ts'

async function linesIn(chunks: Iterable<string>): Promise<string[]> {
  const lines: string[] = []
  for await (const line of readLines(Readable.from(chunks, { objectMode: true }))) lines.push(line)
  return lines
}

const mebibyte = 1024 * 1024

test('Lines are the same for every split into chunks, with or without a line break at the end', async () => {
  const text = 'one\n\ntwo words\r\n{"three":3}'
  for (let size = 1; size <= text.length; size += 1) {
    const parts = Array.from({ length: Math.ceil(text.length / size) }, (_, n) => text.slice(n * size, (n + 1) * size))
    assert.deepEqual(await linesIn(parts), ['one', '', 'two words\r', '{"three":3}'])
    assert.deepEqual(await linesIn([...parts, '\n']), ['one', '', 'two words\r', '{"three":3}'])
  }
})

test('A line above the limit is skipped, and the lines around it are read', async () => {
  const long = 'x'.repeat(mebibyte)
  assert.deepEqual(await linesIn(['before\n', long, '\nafter']), ['before', long, 'after'])
  assert.deepEqual(await linesIn(['before\n', long, 'y', '\nafter']), ['before', 'after'])
  assert.deepEqual(await linesIn(['before\n', long, 'y']), ['before'])
})

test('An endless line, such as from a device, is never held in memory', async () => {
  const part = '\0'.repeat(64 * 1024)
  function* withoutEnd() {
    yield 'before\n'
    for (let mebibytes = 0; mebibytes < 1024; mebibytes += 1 / 16) yield part
    yield '\nafter'
  }
  assert.deepEqual(await linesIn(withoutEnd()), ['before', 'after'])
})
