import { createServer, type AddressInfo, type Socket } from 'node:net'

/** A request as the strictest recipient parses it. */
export interface SeenRequest {
  readonly requestLine: string
  readonly method: string
  readonly target: string
  /** Name and value as written, in order. */
  readonly headers: readonly (readonly [string, string])[]
  /** One character for each byte. */
  readonly body: string
  /** The lines after the last chunk. */
  readonly trailers: readonly string[]
  /** Violations of RFC 9112 by the sender, which a lenient recipient may read differently. */
  readonly faults: readonly string[]
  /** `false` until the request is complete. It stays `false` if the connection breaks off. */
  readonly isWhole: boolean
}

/** An application that parses HTTP byte by byte, tolerates no violation and records everything. */
export interface StrictUpstream {
  readonly url: URL
  /** The requests since `forget`, also incomplete ones. */
  readonly seen: readonly SeenRequest[]
  forget(): void
}

interface Scope {
  after(over: () => unknown): void
}

/** A text in each response that tells it from responses of the gateway. */
const marker = '"seenByUpstream":true'

const mostHeadBytes = 1024 * 1024
const requestLine = /^[!#$%&'*+.^`|~\w-]+ [\x21-\x7e]+ HTTP\/1\.1$/
const headerLine = /^([!#$%&'*+.^`|~\w-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/
const chunkSize = /^([\da-f]{1,8})(?:;[\t\x20-\x7e]*)?$/i

export async function startStrictUpstream(t: Scope): Promise<StrictUpstream> {
  let seen: Reading[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    const reader = new Reader((request) => seen.push(request))
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      for (const request of reader.read(chunk)) socket.write(responseTo(request), 'latin1')
      if (reader.isLost) socket.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    get seen() {
      return seen
    },
    forget: () => void (seen = []),
  }
}

function responseTo({ method }: SeenRequest): string {
  const body = `{${marker}}`
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  return method === 'HEAD' ? head : head + body
}

/**
 * Parses the bytes of one connection as the strictest recipient: requests up to the first one that
 * is malformed or incomplete. It tolerates only what RFC 9112 tells a recipient to tolerate.
 */
export function readStrictly(bytes: string): readonly SeenRequest[] {
  const sound: Reading[] = []
  const reader = new Reader(() => {}, { isReceiver: true })
  for (const request of reader.read(Buffer.from(bytes, 'latin1'))) {
    if (request.faults.length > 0) break
    sound.push(request)
  }
  return sound
}

interface Reading extends SeenRequest {
  body: string
  trailers: readonly string[]
  readonly faults: string[]
  isWhole: boolean
  readonly chunked: boolean
  /** The bytes of content that have not arrived yet. */
  left: number
}

/** Parses the bytes of one connection. */
class Reader {
  #bytes = ''
  #current: Reading | undefined
  readonly #onRequest: (request: Reading) => void
  /** Tolerates what a recipient may tolerate. */
  readonly #isReceiver: boolean
  /** The start of the next request is unknown from here on. */
  isLost = false

  constructor(onRequest: (request: Reading) => void, { isReceiver = false } = {}) {
    this.#onRequest = onRequest
    this.#isReceiver = isReceiver
  }

  /** Returns the requests that this chunk completes. */
  read(chunk: Buffer): Reading[] {
    this.#bytes += chunk.toString('latin1')
    const whole: Reading[] = []
    for (let found = this.#next(); found !== undefined; found = this.#next()) whole.push(found)
    return whole
  }

  #next(): Reading | undefined {
    if (this.isLost) return undefined
    this.#current ??= this.#head()
    const request = this.#current
    if (request === undefined) return undefined
    const isWhole = request.chunked ? this.#chunks(request) : this.#content(request)
    if (!isWhole) return undefined
    request.isWhole = true
    this.#current = undefined
    return request
  }

  #head(): Reading | undefined {
    // RFC 9112 §2.2 and §3: empty lines before a request, and more than one space in its request
    // line.
    if (this.#isReceiver)
      this.#bytes = this.#bytes.replace(/^[\r\n]+/, '').replace(/^(\S+) +(\S+) +(?=HTTP\/)/, '$1 $2 ')
    const end = this.#bytes.indexOf('\r\n\r\n')
    if (end < 0) {
      this.isLost = this.#bytes.length > mostHeadBytes
      return undefined
    }
    const head = this.#bytes.slice(0, end)
    this.#bytes = this.#bytes.slice(end + 4)
    const request = readHead(head)
    this.#onRequest(request)
    return request
  }

  #content(request: Reading): boolean {
    const part = this.#bytes.slice(0, request.left)
    this.#bytes = this.#bytes.slice(part.length)
    request.body += part
    request.left -= part.length
    return request.left === 0
  }

  #chunks(request: Reading): boolean {
    for (;;) {
      const end = this.#bytes.indexOf('\r\n')
      if (end < 0) return false
      const size = chunkSize.exec(this.#bytes.slice(0, end))?.[1]
      if (size === undefined) return this.#lose(request, 'a malformed chunk size')
      const length = parseInt(size, 16)
      if (length === 0) return this.#trailers(request, end)
      const next = end + 2 + length
      if (this.#bytes.length < next + 2) return false
      if (this.#bytes.slice(next, next + 2) !== '\r\n') return this.#lose(request, 'a chunk that does not end')
      request.body += this.#bytes.slice(end + 2, next)
      this.#bytes = this.#bytes.slice(next + 2)
    }
  }

  #trailers(request: Reading, lastChunkEnd: number): boolean {
    const end = this.#bytes.indexOf('\r\n\r\n', lastChunkEnd)
    if (end < 0) return false
    request.trailers = this.#bytes
      .slice(lastChunkEnd + 2, Math.max(end, lastChunkEnd + 2))
      .split('\r\n')
      .filter((line) => line !== '')
    this.#bytes = this.#bytes.slice(end + 4)
    return true
  }

  #lose(request: Reading, why: string): false {
    request.faults.push(why)
    this.isLost = true
    return false
  }
}

function readHead(head: string): Reading {
  const [first = '', ...lines] = head.split('\r\n')
  const [method = '', target = ''] = first.split(' ')
  const faults: string[] = []
  const headers: (readonly [string, string])[] = []
  if (!requestLine.test(first)) faults.push(`the request line ${JSON.stringify(first.slice(0, 60))}`)
  for (const line of lines) {
    const [, name, value] = headerLine.exec(line) ?? []
    if (name === undefined || value === undefined) faults.push(`the header line ${JSON.stringify(line.slice(0, 60))}`)
    else headers.push([name, value.trim()])
  }
  const values = (wanted: string) => headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value)
  const [codings, lengths, hosts] = [values('transfer-encoding'), values('content-length'), values('host')]
  if (codings.length > 0 && lengths.length > 0) faults.push('Transfer-Encoding and Content-Length')
  if (codings.length > 1 || (codings[0] ?? 'chunked').toLowerCase() !== 'chunked')
    faults.push(`Transfer-Encoding: ${codings.join(', ')}`)
  if (lengths.length > 1 || !/^\d{1,15}$/.test(lengths[0] ?? '0')) faults.push(`Content-Length: ${lengths.join(', ')}`)
  if (hosts.length !== 1) faults.push(`${hosts.length} Host lines`)
  const left = Number(lengths[0] ?? 0)
  return {
    requestLine: first,
    method,
    target,
    headers,
    body: '',
    trailers: [],
    faults,
    isWhole: false,
    chunked: codings.length > 0,
    left: Number.isSafeInteger(left) ? left : 0,
  }
}
