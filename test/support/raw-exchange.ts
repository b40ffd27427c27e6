import { connect } from 'node:net'
import { afterRunning } from './running-time.ts'

export interface RawResponse {
  /** All received bytes, one character for each byte. */
  readonly text: string
  /** The status codes of the responses, without 1xx. */
  readonly statuses: readonly number[]
  /** `waiting`: nothing arrived, and the gateway kept the connection open. */
  readonly end: 'closed' | 'quiet' | 'waiting'
}

export interface RawExchangeOptions {
  /** Half-closes the connection after the bytes. */
  readonly halfClose?: boolean
  /** The time without a response after which the exchange counts as waiting, in ms. */
  readonly waitMs?: number
  /** The time without further bytes after which a response counts as complete, in ms. */
  readonly quietMs?: number
}

/** Sends bytes, one for each character, on a new connection, and records all received bytes. */
export function exchangeRaw(port: number, bytes: string, options: RawExchangeOptions = {}): Promise<RawResponse> {
  const { halfClose = false, waitMs = 1500, quietMs = 100 } = options
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    let stop = afterRunning(waitMs, () => finish('waiting'))
    const finish = (end: RawResponse['end']) => {
      stop()
      socket.destroy()
      resolve({ text, statuses: statusesIn(text), end })
    }
    socket.on('error', () => {})
    socket.on('close', () => finish('closed'))
    socket.on('connect', () => {
      socket.write(Buffer.from(bytes, 'latin1'))
      if (halfClose) socket.end()
    })
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      stop()
      stop = afterRunning(quietMs, () => finish('quiet'))
    })
  })
}

export function statusesIn(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.[01] (\d{3})/g)]
    .map(([, status]) => Number(status))
    .filter((status) => status >= 200)
}

/** The value of a header field of the first response. */
export function headerOf(text: string, name: string): string | undefined {
  const head = text.slice(0, text.indexOf('\r\n\r\n'))
  return new RegExp(`\\r\\n${name}: ([^\\r]*)`, 'i').exec(head)?.[1]
}
