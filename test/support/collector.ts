import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from './until.ts'

interface Scope {
  after(over: () => unknown): void
}

/** A received span, with its attributes by name. */
export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly traceState?: string
  readonly name: string
  readonly kind: number
  /** In ns since the epoch. */
  readonly start: bigint
  readonly end: bigint
  readonly attributes: Readonly<Record<string, string>>
  readonly status: number | undefined
}

/**
 * A stand-in for an OpenTelemetry collector. It accepts valid OTLP/HTTP in JSON, and rejects
 * everything else with 400.
 */
export interface Collector {
  readonly url: string
  readonly spans: CollectedSpan[]
  /** The header fields and resource attributes of each accepted request. */
  readonly requests: {
    readonly headers: IncomingHttpHeaders
    readonly path: string | undefined
    readonly resource: Readonly<Record<string, string>>
    readonly count: number
  }[]
  /** The reasons of the rejections. */
  readonly refused: string[]
  /**
   * Sets the status of all further responses. 0: sends no response. With 200, the given number of
   * spans of each batch is rejected.
   */
  respondWith(
    status: number,
    others?: {
      readonly rejectedSpans?: number
      readonly headers?: OutgoingHttpHeaders
      readonly after?: Promise<unknown>
    },
  ): void
  /** The times at which requests arrived, whatever their result, on the monotonic clock in ms. */
  readonly asked: number[]
  /** Waits for the span of this kind for a path, and returns it. */
  spanOf(kind: 'server' | 'client', of: (span: CollectedSpan) => boolean): Promise<CollectedSpan>
}

export async function startCollector(scope: Scope): Promise<Collector> {
  let status = 200
  let rejectedSpans = 0
  let extraHeaders: OutgoingHttpHeaders = {}
  let after: Promise<unknown> | undefined
  const asked: number[] = []
  const spans: CollectedSpan[] = []
  const requests: Collector['requests'] = []
  const refused: string[] = []
  const server = createServer((req, res) => {
    let body = ''
    req.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    req.on('end', () => {
      asked.push(performance.now())
      if (status === 0) return
      if (status !== 200) {
        const [refusal, headers] = [status, extraHeaders]
        const refuse = () => void res.writeHead(refusal, headers).end('{"code":14,"message":"hunter2"}')
        return after === undefined ? refuse() : void after.then(refuse)
      }
      try {
        if (req.method !== 'POST' || req.headers['content-type'] !== 'application/json')
          throw new Error(`${req.method} of ${req.headers['content-type']}`)
        const { resource, spans: taken } = read(JSON.parse(body))
        requests.push({ headers: req.headers, path: req.url, resource, count: taken.length })
        spans.push(...taken.slice(rejectedSpans))
        const partialSuccess =
          rejectedSpans === 0 ? {} : { rejectedSpans: String(rejectedSpans), errorMessage: 'hunter2' }
        res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ partialSuccess }))
      } catch (error) {
        refused.push(String(error))
        res.writeHead(400).end()
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  scope.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    refused,
    respondWith: (next, others = {}) => {
      status = next
      rejectedSpans = others.rejectedSpans ?? 0
      extraHeaders = others.headers ?? {}
      after = others.after
    },
    asked,
    spanOf: async (kind, of) => {
      const found = () => spans.find((span) => span.kind === (kind === 'server' ? 2 : 3) && of(span))
      await until(`a ${kind} span`, () => found() !== undefined)
      return found() as CollectedSpan
    },
  }
}

/** @throws when the message violates the JSON mapping of opentelemetry-proto */
function read(body: unknown): { readonly resource: Record<string, string>; readonly spans: CollectedSpan[] } {
  const [batch, ...others] = listIn(body, 'resourceSpans')
  if (others.length > 0) throw new Error('more than one resource')
  const scopes = listIn(batch, 'scopeSpans')
  const resource = attributesIn(memberOf(batch, 'resource'))
  return { resource, spans: scopes.flatMap((each) => listIn(each, 'spans').map(readSpan)) }
}

function readSpan(span: unknown): CollectedSpan {
  const text = (name: string, pattern: RegExp): string => {
    const value = memberOf(span, name)
    if (typeof value !== 'string' || !pattern.test(value)) throw new Error(`${name} is ${JSON.stringify(value)}`)
    return value
  }
  const optional = (name: string, pattern: RegExp) =>
    memberOf(span, name) === undefined ? {} : { [name]: text(name, pattern) }
  const kind = memberOf(span, 'kind')
  const status = memberOf(span, 'status')
  if (kind !== 2 && kind !== 3) throw new Error(`kind is ${JSON.stringify(kind)}`)
  const notZero = (digits: number) => new RegExp(`^(?!0+$)[\\da-f]{${digits}}$`)
  return {
    traceId: text('traceId', notZero(32)),
    spanId: text('spanId', notZero(16)),
    ...optional('parentSpanId', notZero(16)),
    ...optional('traceState', /./),
    name: text('name', /./),
    kind,
    start: BigInt(text('startTimeUnixNano', /^\d{19}$/)),
    end: BigInt(text('endTimeUnixNano', /^\d{19}$/)),
    attributes: attributesIn(span),
    status: status === undefined ? undefined : (memberOf(status, 'code') as number),
  }
}

function attributesIn(of: unknown): Record<string, string> {
  const attributes: Record<string, string> = {}
  for (const attribute of listIn(of, 'attributes')) {
    const key = memberOf(attribute, 'key')
    const value = memberOf(attribute, 'value')
    const whole = memberOf(value, 'intValue')
    const text = memberOf(value, 'stringValue') ?? whole
    // The JSON of protocol buffers writes 64-bit integers as text.
    if (whole !== undefined && (typeof whole !== 'string' || !/^\d+$/.test(whole)))
      throw new Error(`${JSON.stringify(whole)} is no intValue`)
    if (typeof key !== 'string' || typeof text !== 'string' || key in attributes)
      throw new Error(`attribute ${JSON.stringify(attribute)}`)
    attributes[key] = text
  }
  return attributes
}

function memberOf(of: unknown, name: string): unknown {
  if (typeof of !== 'object' || of === null) throw new Error(`${name} of ${JSON.stringify(of)}`)
  return (of as Record<string, unknown>)[name]
}

function listIn(of: unknown, name: string): readonly unknown[] {
  const list = memberOf(of, name)
  if (!Array.isArray(list)) throw new Error(`${name} is ${JSON.stringify(list)}`)
  return list
}
