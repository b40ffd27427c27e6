// Makes the gateway hold as much as possible, from its own process: `holding.ts FLOOD` (JSON, see
// `HoldingFlood`). It replaces connections that are closed.
import { connect, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'

export interface HoldingFlood {
  readonly kind: string
  readonly port: number
  readonly isTls: boolean
  readonly connections: number
  /** From how many addresses, each in a network of its own. */
  readonly addresses: number
}

const form = 'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 16000'
const fieldsOf = (bytes: number, line: (at: number) => string) => {
  let text = ''
  for (let at = 0; text.length < bytes; at += 1) text += `${line(at)}\r\n`
  return text
}
const long = (bytes: number) => fieldsOf(bytes, (at) => `X-${at}: ${'v'.repeat(990)}`)
const short = (bytes: number) => fieldsOf(bytes, (at) => `X-${at % 1000}:vvv`)
/** At most 100 fields, the default of `limits.header_count`. */
const usual = (bytes: number) => fieldsOf(bytes, (at) => `X-${at}: ${'v'.repeat(Math.ceil(bytes / 80))}`)
const head = (line: string, fields: string) => `${line} HTTP/1.1\r\nHost: h\r\n${fields}`
const unusual = head('GET /hello', 'TE: trailers\r\n\r\n')
const kilobyte = 1024

/** What each connection sends at once, and whether it never reads. */
const kinds: Readonly<Record<string, { readonly parts: readonly string[]; readonly neverReads?: true }>> = {
  'connections and nothing else': { parts: [] },
  'handshakes that never end': { parts: ['\x16\x03\x01'] },
  'heads of long fields that never end': { parts: [head('GET /', long(28 * kilobyte))] },
  'heads of short fields that never end': { parts: [head('GET /', short(28 * kilobyte))] },
  'heads of 14 KiB that never end': { parts: [head('GET /', long(14 * kilobyte))] },
  'second heads that never end': { parts: [unusual, head('GET /', short(28 * kilobyte))] },
  'forms that never end': {
    parts: [head('POST /.gatehouse/backchannel-logout', `${form}\r\n\r\n${'x'.repeat(15_000)}`)],
  },
  'large heads with forms that never end': {
    parts: [head('POST /.gatehouse/backchannel-logout', `${usual(28 * kilobyte)}${form}\r\n\r\nx=`)],
  },
  'large heads for a slow page': { parts: [head('GET /slow', `${usual(28 * kilobyte)}\r\n`)] },
  'small heads for a slow page': { parts: [head('GET /slow', '\r\n')] },
  'uploads to a slow page': {
    parts: [head('POST /slow', `Content-Length: 300000\r\n\r\n`), 'x'.repeat(299_000)],
  },
  'chunked uploads to a slow page': {
    parts: [head('POST /slow', `Transfer-Encoding: chunked\r\n\r\n493e0\r\n`), 'x'.repeat(299_000)],
  },
  'uploads that the application does not read': {
    parts: [head('POST /unread', `Content-Length: 3000000\r\n\r\n`), 'x'.repeat(2_900_000)],
  },
  'pipelined requests': { parts: [head('GET /slow', '\r\n').repeat(300)] },
  'pipelined unusual requests': { parts: [unusual.replace('/hello', '/slow') + unusual.repeat(50)] },
  'upgrades with large heads for a slow page': {
    parts: [head('GET /slow', `${usual(28 * kilobyte)}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)],
  },
  'responses that are not read': { parts: [head('GET /large', '\r\n')], neverReads: true },
}

export const holdingKinds: readonly string[] = Object.keys(kinds)

if (process.argv[2] !== undefined && process.send !== undefined) flood(JSON.parse(process.argv[2]) as HoldingFlood)

function flood({ kind, port, isTls, connections, addresses }: HoldingFlood): void {
  const { parts, neverReads } = kinds[kind] ?? { parts: [] }
  const bytes = parts.map((part) => Buffer.from(part, 'latin1'))
  let [opened, closed] = [0, 0]
  const statuses: Record<string, number> = {}
  const open = (number: number): void => {
    opened += 1
    const at = number % addresses
    const target = { port, host: '127.0.0.1', localAddress: `127.${1 + (at >> 8)}.${at & 255}.1` }
    const socket: Socket =
      isTls && kind !== 'handshakes that never end'
        ? connectTls({ ...target, rejectUnauthorized: false })
        : connect(target)
    socket
      .on('error', () => {})
      .once('close', () => {
        closed += 1
        setTimeout(open, 200, number)
      })
    if (neverReads) socket.pause()
    else
      socket.on('data', (part: Buffer) => {
        const status = /^HTTP\/1\.1 (\d+)/.exec(part.toString('latin1', 0, 20))?.[1] ?? 'content'
        statuses[status] = (statuses[status] ?? 0) + 1
      })
    socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
      for (const part of bytes) socket.write(part)
    })
  }
  let number = 0
  const opening = setInterval(() => {
    for (let count = 0; count < 100 && number < connections; count += 1) open(number++)
    if (number >= connections) {
      clearInterval(opening)
      process.send?.('begun')
    }
  }, 10)
  process.on('message', () => process.send?.({ opened, closed, statuses }, () => process.exit()))
}
