import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { closeFrameToClient, closeFrameToServer, FrameTracker } from '../../src/proxy/websocket-frames.ts'
import { dataFrame, encode, frames, split } from './frames.ts'

const sides = ['client', 'server'] as const

for (const from of sides)
  test(`The end of a frame of a ${from} is recognized, however the frames are split into chunks`, () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(), { maxLength: 30 }), (sent, places) => {
        const encoded = sent.map((frame) => encode(frame, from))
        const ends = new Set([0])
        for (const [index, { length }] of encoded.entries()) ends.add(([...ends][index] ?? 0) + length)
        const tracker = new FrameTracker(from)
        let passed = 0
        for (const chunk of split(Buffer.concat(encoded), places)) {
          tracker.read(chunk)
          passed += chunk.length
          assert.equal(tracker.place, ends.has(passed) ? 'between' : 'inside', `after ${passed} bytes`)
        }
      }),
      { numRuns: 300 },
    )
  })

test('The rest of a frame is separated from what follows, wherever the frame is split', () => {
  fc.assert(
    fc.property(dataFrame, dataFrame, fc.nat(), fc.nat(), (frame, next, first, second) => {
      const [bytes, after] = [encode(frame, 'server'), encode(next, 'server')]
      const [begun = Buffer.alloc(0), ...chunks] = split(Buffer.concat([bytes, after]), [
        1 + (first % (bytes.length - 1)),
        second,
      ]).filter(({ length }) => length > 0)
      fc.pre(begun.length < bytes.length)
      const tracker = new FrameTracker('server')
      tracker.read(begun)

      let taken = begun.length
      for (const chunk of chunks) taken += tracker.readToEndOfFrame(chunk)

      assert.equal(taken, bytes.length)
      assert.equal(tracker.place, 'between')
    }),
  )
})

for (const from of sides)
  test(`Whatever a ${from} sends, the position does not depend on the chunks`, () => {
    const startOfFrame = fc.tuple(
      fc.constantFrom(0x00, 0x81, 0x82, 0x88, 0x89, 0x83),
      fc.constantFrom(0, 1, 0x80, 0x85, 126, 0xfe),
    )
    const bytes = fc.array(fc.oneof(startOfFrame, fc.array(fc.nat({ max: 255 }), { maxLength: 8 })), { maxLength: 20 })
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(), { maxLength: 5 }), (parts, places) => {
        const sent = Buffer.from(parts.flat())
        const [inChunks, byByte] = [new FrameTracker(from), new FrameTracker(from)]
        for (const chunk of split(sent, places)) inChunks.read(chunk)
        for (const byte of sent) byByte.read(Buffer.from([byte]))
        assert.equal(inChunks.place, byByte.place)
      }),
      { numRuns: 1000 },
    )
  })

test('A frame that is much larger than the memory is tracked', () => {
  const tracker = new FrameTracker('server')
  tracker.read(Buffer.from([0x82, 127, 0, 0, 0x10, 0, 0, 0, 0, 0]))
  for (let each = 0; each < 1000; each++) tracker.read(Buffer.alloc(65_536, 0x88))
  assert.equal(tracker.place, 'inside')
})

test('Nothing follows a Close frame', () => {
  for (const close of [Buffer.from([0x88, 0]), closeFrameToClient(1000, 'bye')]) {
    const tracker = new FrameTracker('server')
    tracker.read(Buffer.concat([encode({ opcode: 1, fin: true, rsv: 0, length: 5 }, 'server'), close]))
    assert.equal(tracker.place, 'after_close')
    tracker.read(Buffer.from([0x81, 1, 0]))
    assert.equal(tracker.place, 'after_close')
  }
})

for (const [what, from, header] of [
  ['a reserved opcode', 'server', [0x83, 0]],
  ['a reserved control opcode', 'server', [0x8b, 0]],
  ['a fragmented control frame', 'server', [0x09, 0]],
  ['a control frame that is too long', 'server', [0x89, 126]],
  ['a masked frame of a server', 'server', [0x81, 0x80]],
  ['a bare frame of a client', 'client', [0x81, 0]],
  ['a length with its highest bit set', 'server', [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]],
  ['a length that no number holds', 'server', [0x82, 127, 0x00, 0x20, 0, 0, 0, 0, 0, 0]],
  ['not a WebSocket', 'server', [...Buffer.from('SSH-2.0-OpenSSH')]],
] as const)
  test(`Tracking stops at ${what}`, () => {
    const tracker = new FrameTracker(from)
    for (const byte of header) tracker.read(Buffer.from([byte]))
    assert.equal(tracker.place, 'unknown')

    tracker.read(encode({ opcode: 1, fin: true, rsv: 0, length: 5 }, from))

    assert.equal(tracker.place, 'unknown')
  })

test('No bytes make the tracking fail', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.constantFrom(...sides), (bytes, from) => {
      const tracker = new FrameTracker(from)
      tracker.read(Buffer.from(bytes))
      tracker.readToEndOfFrame(Buffer.from(bytes))
    }),
  )
})

test('A Close frame of the gateway is a valid frame, and the last one', () => {
  for (const [from, frame] of [
    ['server', closeFrameToClient(1008, 'session ended')],
    ['client', closeFrameToServer(1001)],
  ] as const) {
    const tracker = new FrameTracker(from)
    tracker.read(frame.subarray(0, -1))
    assert.equal(tracker.place, 'inside')
    tracker.read(frame.subarray(-1))
    assert.equal(tracker.place, 'after_close')
  }
})
