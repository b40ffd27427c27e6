import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plainRequestHead } from '../../src/listener/plain/request-head.ts'
import { plainResponseHead } from '../../src/transport/http1/response-head.ts'
import { FieldLines, FieldPairs, lineLength } from '../../src/wire/field-lines.ts'
import { fieldLine } from '../../src/wire/fields.ts'

const received = ['Host', 'orders.example.com', 'X-A', '1', 'X-Empty', '', 'Cookie', 'a=1; b=2', 'X-B', 'caf\xe9']
const receivedText = FieldLines.of(received).text

/** Treats each field by the letter at its place: keep, drop, replace, or add another one. */
function collect(treatments: string, fields: FieldLines): string {
  let next = 0
  for (let at = 0; at + 1 < received.length; at += 2) {
    const [name, value] = [received[at] as string, received[at + 1] as string]
    const line = next
    next += lineLength(name, value)
    const treatment = treatments[at / 2]
    if (treatment === 'k') fields.keep(name, value, line)
    else if (treatment === 'r') fields.add(name, 'replaced')
    else if (treatment === 'a') {
      fields.add('X-Added', 'before')
      fields.keep(name, value, line)
    }
  }
  fields.add('X-Last', 'z')
  return fields.text
}

test('A head is the same whether its lines are copied or written anew', () => {
  const letters = ['k', 'd', 'r', 'a']
  const count = received.length / 2
  for (let n = 0; n < letters.length ** count; n += 1) {
    const treatments = Array.from({ length: count }, (_, at) => letters[Math.floor(n / letters.length ** at) % 4]).join(
      '',
    )

    assert.equal(collect(treatments, new FieldLines(receivedText)), collect(treatments, new FieldLines()), treatments)
  }
})

test('A field that was not kept is not in the head, whatever is kept around it', () => {
  const text = collect('kdkdk', new FieldLines(receivedText))

  assert.equal(text, '\r\nHost: orders.example.com\r\nX-Empty: \r\nX-B: caf\xe9\r\nX-Last: z')
})

test('Fields that come first are before those that are kept, in their order', () => {
  const fields = new FieldLines(receivedText)
  fields.keep('Host', 'orders.example.com', 0)
  fields.addFirst(['Set-Cookie', 'a=; Max-Age=0', 'Set-Cookie', 'b=; Max-Age=0'])

  const cookies = '\r\nSet-Cookie: a=; Max-Age=0\r\nSet-Cookie: b=; Max-Age=0'
  assert.equal(fields.text, `${cookies}\r\nHost: orders.example.com`)
})

test('A field with a line end is left out, and is named', () => {
  for (const value of ['1\r\nX-Remote-User: admin', '1\n2', '1\0'])
    for (const add of ['add', 'addFirst'] as const) {
      const fields = new FieldLines()
      fields.add('X-B', '1')
      if (add === 'add') fields.add('X-A', value)
      else fields.addFirst(['X-A', value])

      assert.deepEqual([fields.text, fields.invalid], ['\r\nX-B: 1', 'X-A'])
    }
})

test('Lines know whether they have Date, Content-Length and Connection, in any case', () => {
  const facts = ({ hasDate, hasContentLength, hasConnection, closes }: FieldLines) =>
    [hasDate, hasContentLength, hasConnection, closes] as const

  assert.deepEqual(facts(FieldLines.of(['X-Date', '', 'Length', '1'])), [false, false, false, false])
  assert.deepEqual(facts(FieldLines.of(['DATE', 'now', 'content-LENGTH', '1'])), [true, true, false, false])
  assert.deepEqual(facts(FieldLines.of(['connection', 'keep-alive'])), [false, false, true, false])
  assert.deepEqual(facts(FieldLines.of(['Connection', 'close', 'Connection', 'x'])), [false, false, true, true])
})

test('Pairs keep their order, and fields that come first are before them', () => {
  const fields = new FieldPairs()
  fields.add('A', '1')
  fields.keep('B', '2')
  fields.addFirst(['C', '3', 'D', '4'])

  assert.deepEqual(fields.pairs, ['C', '3', 'D', '4', 'A', '1', 'B', '2'])
})

// A line that is written in another way has another length, so its place would not be known.
const readers = {
  request: (lines: string) =>
    plainRequestHead(...headOf(`GET / HTTP/1.1\r\nHost: a${lines}`))?.fieldText?.slice('\r\nHost: a'.length),
  response: (lines: string) =>
    plainResponseHead(...headOf(`HTTP/1.1 200 OK\r\nContent-Length: 0${lines}`), 'GET')?.fieldText?.slice(
      '\r\nContent-Length: 0'.length,
    ),
}

function headOf(text: string): [bytes: Buffer, headEnd: number] {
  return [Buffer.from(`${text}\r\n\r\n`, 'latin1'), text.length]
}

for (const [kind, read] of Object.entries(readers)) {
  test(`The lines of a ${kind} are copied only if each is written with one space and no other`, () => {
    for (const lines of ['', '\r\nX-A: 1', '\r\nX-A: 1\r\nX-B: \r\nx-c: a b\tc', '\r\nX-A: caf\xe9'])
      assert.equal(read(lines), lines)
    for (const unusual of ['X-A:1', 'X-A:  1', 'X-A: 1 ', 'X-A: 1\t', 'X-A:\t1', 'X-A:', 'X-A:  ', 'X-A: \t'])
      for (const lines of [`\r\n${unusual}`, `\r\n${unusual}\r\nX-B: 2`, `\r\nX-B: 2\r\n${unusual}`])
        assert.equal(read(lines), undefined, JSON.stringify(lines))
  })

  test(`The lines of a ${kind} are those of its names and values`, () => {
    const pairs = ['X-A', '1', 'X-a', '', 'X-A', 'two words', 'X-B', '\xff']

    assert.equal(
      read(FieldLines.of(pairs).text),
      pairs.flatMap((name, at) => (at % 2 === 0 ? fieldLine(name, pairs[at + 1] ?? '') : [])).join(''),
    )
  })
}
