import type { TestContext } from 'node:test'
import { type Http2Target, Http2Transport } from '../../../src/transport/http2/http2-transport.ts'
import type {
  ExchangeControl,
  Progress,
  RawFields,
  RequestContent,
  ResponseHandler,
  UpstreamRequest,
} from '../../../src/transport/transport.ts'

export const get: UpstreamRequest = {
  method: 'GET',
  path: '/',
  headers: ['Host', 'orders.example.com'],
  identity: [],
  body: undefined,
  upgrade: undefined,
}

/** What a handler has received. */
export interface Outcome {
  status: number
  fields: RawFields
  body: string
  trailers: RawFields
  error: string
  message: string
  progress: Progress | undefined
  sends: number
  control: ExchangeControl | undefined
  done: number
}

/** Sends a request, and resolves when it is over. `outcome` is filled meanwhile. */
export function send(
  transport: Http2Transport,
  request: UpstreamRequest = get,
  changes: Partial<ResponseHandler> = {},
): { readonly outcome: Outcome; readonly over: Promise<Outcome> } {
  const outcome: Outcome = {
    ...{ status: 0, fields: [], body: '', trailers: [], error: '', message: '', progress: undefined },
    ...{ sends: 0, control: undefined, done: 0 },
  }
  const over = new Promise<Outcome>((resolve) =>
    transport.dispatch(request, {
      onSend: (control) => {
        outcome.control = control
        outcome.sends += 1
        return true
      },
      onResponse: (status, _, fields) => Object.assign(outcome, { status, fields }),
      onShortPart: (part) => void (outcome.body += part.toString('latin1')),
      onContent: (part, giveBack) => {
        outcome.body += part.toString('latin1')
        giveBack()
      },
      onEnd: (trailers) => resolve(Object.assign(outcome, { trailers })),
      onSwitch: ({ socket }) => socket.destroy(),
      onError: ({ code, message }, progress) => resolve(Object.assign(outcome, { error: code, message, progress })),
      onDone: () => void (outcome.done += 1),
      ...changes,
    }),
  )
  return { outcome, over }
}

export function transportTo(t: TestContext, port: number, changes: Partial<Http2Target> = {}): Http2Transport {
  const transport = new Http2Transport({
    ...{ host: '127.0.0.1', port, tls: undefined, maxConnections: 4, streamsPerConnection: 100 },
    ...{ connectTimeoutMs: 10_000, keepAliveMs: 10_000, lifetimeMs: 60_000 },
    ...changes,
  })
  t.after(() => transport.destroy())
  return transport
}

/** Content that is passed as these parts. The last one does not end it when `isOpen`. */
export function content(parts: readonly string[], isOpen = false): RequestContent & { isDestroyed: boolean } {
  return {
    isDestroyed: false,
    isIncomplete: isOpen,
    begin(reader) {
      for (const part of parts) reader.onPart(Buffer.from(part), () => {})
      if (!isOpen) reader.onEnd()
    },
    pause() {},
    resume() {},
    destroy() {
      this.isDestroyed = true
    },
  }
}
