// Slow: 4 s, heads of every size are sent byte by byte
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { httpUpstream } from '../../proxy/support.ts'
import { statusesIn } from '../../support/raw-exchange.ts'
import { isLongSearch } from '../../support/searches.ts'
import { startWorld, type Replica } from '../../support/world.ts'

const last = 'GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'
const lengthField = (value: string, content = '') =>
  `POST /a HTTP/1.1\r\nHost: h\r\nContent-Length:${value}\r\n\r\n${content}`

/** A head of this many bytes, the empty line at its end included. */
function headOf(bytes: number, filled: 'target' | 'field' | 'fields'): string {
  const [before, after] =
    filled === 'target'
      ? ['GET /', ' HTTP/1.1\r\nHost: h\r\n\r\n']
      : ['GET /a HTTP/1.1\r\nHost: h\r\nX-A: ', '\r\n\r\n']
  const missing = bytes - before.length - after.length
  if (filled !== 'fields') return before + 'x'.repeat(missing) + after
  const field = `${'y'.repeat(90)}\r\nX-A: `
  const count = Math.floor(missing / field.length) - 1
  return before + field.repeat(count) + 'x'.repeat(missing - field.length * count) + after
}

const around = (bound: number) => [-2, -1, 0, 1, 2].map((more) => bound + more)
const fieldCount = (count: number) =>
  `GET /a HTTP/1.1\r\nHost: h\r\n${Array.from({ length: count - 1 }, (_, at) => `X-${at}: ${at}\r\n`).join('')}\r\n`

const heads = [4096, 16 * 1024]
  .flatMap(around)
  .flatMap((bytes) => (['target', 'field', 'fields'] as const).map((filled) => headOf(bytes, filled)))
const counts = [99, 100, 101, 1000].map(fieldCount)
const lengths = [
  ...[' 5', '5', '\t5\t', ' 05', ' +5', ' -5', ' 5 5', ' 5,5', ' 5, 5', ' 0x5', ' 5e0', ' 5.0', ' ', ''],
  ...[' 5\r\nContent-Length: 5', ' 5\r\nContent-Length: 6', ' 5\r\ncontent-length:5', ' 5\r\nContent-Length:'],
  ...['0'.repeat(13) + '5', '0'.repeat(14) + '5', '0'.repeat(15) + '5', '0'.repeat(20) + '5'],
].map((value) => lengthField(value, 'hello'))
/** The content never arrives completely, so the client ends its data. */
const endless = [2 ** 53, 2 ** 53 + 2, 2 ** 64, 10 ** 15].map((value) => lengthField(` ${BigInt(value)}`, 'hello'))

/** The places to cut at: around each end, and around the bounds. */
function cutsOf(text: string): number[][] {
  const end = text.indexOf('\r\n\r\n')
  const near = [end, end + 4, 4096, 16 * 1024, text.length]
    .flatMap((at) => (isLongSearch ? [at - 2, at - 1, at, at + 1, at + 2] : [at - 1, at + 1]))
    .filter((at) => at > 0 && at < text.length)
  return [[], [20], ...near.map((at) => [at]), ...near.map((at) => [at - 1, at].filter((place) => place > 0))]
}

/** The statuses of all responses, and what the application has understood. */
async function exchange(port: number, parts: readonly string[], isComplete: boolean): Promise<readonly unknown[]> {
  const socket = connect(port, '127.0.0.1').setNoDelay()
  let text = ''
  socket.on('error', () => {}).on('data', (part: Buffer) => (text += part.toString('latin1')))
  await once(socket, 'connect')
  const closed = once(socket, 'close')
  for (const part of parts) {
    socket.write(part, 'latin1')
    await new Promise((resolve) => setImmediate(resolve))
  }
  if (!isComplete) socket.end()
  await closed
  return [...statusesIn(text), ...[...text.matchAll(/\[\w+ [\d ]+\]/g)].map(String)]
}

for (const headerSize of ['4kb', '32kb'])
  test(`Requests at the bounds mean the same to both parsers, with header_size: ${headerSize}`, async (t) => {
    const { port } = await httpUpstream(t, async (req, res) => {
      let length = 0
      for await (const part of req) length += (part as Buffer).length
      const fields = Object.entries(req.headers).filter(([name]) => /^x-\w$|^x-\d/.test(name))
      res.end(`[${req.method} ${req.url?.length} ${fields.length} ${String(req.headers['x-a']).length} ${length}]`)
    })
    let plainPath = true
    const world = await startWorld(t, {
      upstream: new URL(`http://127.0.0.1:${port}`),
      upstreamSettings: 'rules: [{ path: /*, access: public }]',
      settings: `limits: { header_size: ${headerSize} }`,
      listen: (address) => `{ address: "${address}", plain_path: ${plainPath} }`,
    })
    plainPath = false
    await world.startReplica()
    const [plain, reference] = world.replicas as [Replica, Replica]

    const compare = async (text: string, cuts: readonly number[], isComplete: boolean) => {
      const all = isComplete ? text + last : text
      const at = [0, ...cuts]
      const parts = at.map((from, index) => all.slice(from, at[index + 1] ?? all.length))
      const [actual, expected] = await Promise.all(
        [plain, reference].map(({ gateway }) => exchange(gateway.address.port, parts, isComplete)),
      )
      assert.deepEqual(actual, expected, `${JSON.stringify(text.slice(0, 100))} cut at ${cuts.join()}`)
    }
    for (const text of [...heads, ...counts, ...lengths])
      await Promise.all(cutsOf(text).map((cuts) => compare(text, cuts, true)))
    for (const text of endless) await Promise.all(cutsOf(text).map((cuts) => compare(text, cuts, false)))

    const [inLog, inReference] = [plain, reference].map(({ access }) =>
      access.map(({ path, status, code, bytes }) => JSON.stringify([path, status, code, bytes])).sort(),
    )
    assert.deepEqual(inLog, inReference)
  })
