// Sends a flood from its own process: `flooding.ts PORT KIND CONNECTIONS [COOKIE]`. On "stop", it
// reports the number of responses for each status.
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

const [port = '0', kind = '', connections = '0', cookie = ''] = process.argv.slice(2)
const statuses = new Map<string, number>()
let isOver = false

const note = (what: string) => void statuses.set(what, (statuses.get(what) ?? 0) + 1)
const head = (line: string, ...fields: string[]) =>
  [`${line} HTTP/1.1`, `Host: 127.0.0.1:${port}`, ...fields, '', ''].join('\r\n')
const form = (content: string) => [
  'Content-Type: application/x-www-form-urlencoded',
  `Content-Length: ${content.length}\r\n\r\n${content}`,
]
const token = (header: object) => `${Buffer.from(JSON.stringify(header)).toString('base64url')}.e30.${'A'.repeat(342)}`

/** Creates a request of each kind. */
const requests: Readonly<Record<string, () => string>> = {
  'pages of the signed-in': () => head('GET /bytes/1024', `Cookie: gatehouse=${cookie}`),
  'pages of strangers': () => head('GET /bytes/1024', 'Accept: text/html'),
  'cookies without a session': () =>
    head('GET /bytes/1024', `Cookie: gatehouse=${randomBytes(48).toString('base64url')}`),
  'sign-ins begun': () => head('GET /.gatehouse/sign-in', 'Accept: text/html'),
  'callbacks made up': () => head(`GET /.gatehouse/callback?code=x&state=${randomBytes(300).toString('base64url')}`),
  'logout tokens made up': () =>
    head('POST /.gatehouse/backchannel-logout').slice(0, -2) +
    form(`logout_token=${token({ alg: 'RS256', kid: randomBytes(8).toString('hex') })}`).join('\r\n'),
  'malformed requests': () => head('GET /bytes/1024', 'Host: elsewhere.example'),
  'heads of 64 KiB': () => head('GET /bytes/1024', `X-Much: ${'x'.repeat(64 * 1024)}`),
}

/**
 * Opens a connection, sends a request after each response, and replaces the connection when it
 * ends.
 */
function ask(request: () => string): void {
  const socket = open(() => ask(request))
  socket.on('data', (chunk: Buffer) => {
    const text = chunk.toString('latin1')
    for (const [, status = ''] of text.matchAll(/(?:^|\r\n|\})HTTP\/1\.1 (\d{3}) /g)) {
      note(status)
      if (!isOver) socket.write(request())
    }
  })
  socket.write(request())
}

/** Sends one header line a second and never ends the header section. */
function trickle(): void {
  const socket = open(trickle)
  socket.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`)
  const timer = setInterval(() => socket.write('X-Slow: 1\r\n'), 1000)
  socket.on('data', () => note('refused')).on('close', () => clearInterval(timer))
}

/** Opens a connection and closes it at once. */
function come(): void {
  const socket = open(come)
  socket.once('connect', () => {
    note('connected')
    socket.resetAndDestroy()
  })
}

function open(again: () => void): Socket {
  const socket = connect({ port: Number(port), host: '127.0.0.1' })
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.once('close', () => {
    if (!isOver) setImmediate(again)
  })
  return socket
}

const once = kind === 'heads that never end' ? trickle : kind === 'connections and nothing else' ? come : undefined
const request = requests[kind]
for (let count = 0; count < Number(connections); count += 1) {
  if (once) once()
  else if (request) ask(request)
  else throw new Error(`no such flood: ${kind}`)
}
process.send?.('begun')
process.on('message', () => {
  isOver = true
  process.send?.(Object.fromEntries(statuses), () => process.exit())
})
