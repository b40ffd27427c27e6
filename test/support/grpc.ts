import type { TestContext } from 'node:test'
import {
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  credentials,
  makeGenericClientConstructor,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type ServiceError,
  status,
  type StatusObject,
} from '@grpc/grpc-js'

const text = { serialize: (value: string) => Buffer.from(value), deserialize: (bytes: Buffer) => bytes.toString() }

function method(name: string, requestStream: boolean, responseStream: boolean) {
  return {
    ...{ path: `/orders.Orders/${name}`, requestStream, responseStream },
    ...{ requestSerialize: text.serialize, requestDeserialize: text.deserialize },
    ...{ responseSerialize: text.serialize, responseDeserialize: text.deserialize },
  }
}

/** Its messages are texts. */
const service: ServiceDefinition = {
  unary: method('Unary', false, false),
  collect: method('Collect', true, false),
  list: method('List', false, true),
  chat: method('Chat', true, true),
}

type Callback = (error: Partial<ServiceError> | null, value?: string, trailer?: Metadata) => void

export interface GrpcServer {
  readonly url: URL
  /** The metadata of the calls. */
  readonly seen: Readonly<Record<string, unknown>>[]
  /** The calls of `list` and `chat` that were cancelled. */
  cancelled: number
  /** Breaks all connections off. */
  stop(): void
}

/**
 * A server of gRPC, with TLS where there is a key pair. `unary` responds with its message; `fail`
 * with an error, and `wait` never. `list` sends its message three times, and stays open for
 * `open`. `chat` sends each message back.
 */
export async function startGrpcServer(t: TestContext, tls?: { cert: Buffer; key: Buffer }): Promise<GrpcServer> {
  const served: { url: URL; seen: Record<string, unknown>[]; cancelled: number } = {
    ...{ url: new URL('http://127.0.0.1'), seen: [], cancelled: 0 },
  }
  const note = (call: { metadata: Metadata; on?(event: 'cancelled', listener: () => void): unknown }) => {
    served.seen.push(call.metadata.getMap())
    call.on?.('cancelled', () => (served.cancelled += 1))
  }
  const server = new Server()
  server.addService(service, {
    unary: (call: ServerUnaryCall<string, string>, done: Callback) => {
      note(call)
      if (call.request === 'wait') return
      const trailer = new Metadata()
      trailer.set('x-sum', '7')
      if (call.request === 'fail') done({ code: status.NOT_FOUND, details: 'no order 7: müde', metadata: trailer })
      else done(null, `echo ${call.request}`, trailer)
    },
    collect: (call: ServerReadableStream<string, string>, done: Callback) => {
      note(call)
      const parts: string[] = []
      call.on('data', (part: string) => parts.push(part)).on('end', () => done(null, parts.join(' ')))
    },
    list: (call: ServerWritableStream<string, string>) => {
      note(call)
      for (const index of [1, 2, 3]) call.write(`${call.request} ${index}`)
      if (call.request !== 'open') call.end()
    },
    chat: (call: ServerDuplexStream<string, string>) => {
      note(call)
      call.on('data', (part: string) => call.write(`echo ${part}`)).on('end', () => call.end())
    },
  })
  const secure = tls && ServerCredentials.createSsl(null, [{ private_key: tls.key, cert_chain: tls.cert }])
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', secure ?? ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  t.after(() => server.forceShutdown())
  return Object.assign(served, {
    stop: () => server.forceShutdown(),
    url: new URL(`http${tls === undefined ? '' : 's'}://127.0.0.1:${port}`),
  })
}

interface Calls {
  unary(
    value: string,
    metadata: Metadata,
    options: object,
    done: (error: ServiceError | null, value?: string) => void,
  ): ClientUnaryCall
  collect(metadata: Metadata, done: (error: ServiceError | null, value?: string) => void): ClientWritableStream<string>
  list(value: string, metadata: Metadata): ClientReadableStream<string>
  chat(metadata: Metadata): ClientDuplexStream<string, string>
}

/** How a call has ended. */
export interface GrpcOutcome {
  readonly values: readonly string[]
  readonly status: StatusObject
}

export interface GrpcClient {
  unary(value: string, options?: { readonly deadline?: number }): Promise<GrpcOutcome>
  collect(values: readonly string[]): Promise<GrpcOutcome>
  list(value: string): { readonly values: readonly string[]; readonly over: Promise<GrpcOutcome> }
  chat(): {
    readonly call: ClientDuplexStream<string, string>
    readonly values: readonly string[]
    readonly over: Promise<GrpcOutcome>
  }
}

/** A client of such a server, whose calls have these fields. */
export function grpcClient(t: TestContext, url: string, fields: Readonly<Record<string, string>> = {}): GrpcClient {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(fields)) metadata.set(name, value)
  const Client = makeGenericClientConstructor(service, 'Orders')
  const client = new Client(new URL(url).host, credentials.createInsecure())
  t.after(() => client.close())
  const calls = client as unknown as Calls
  const outcomeOf = (
    call: { on(event: 'status', listener: (status: StatusObject) => void): unknown },
    values: string[],
  ) => new Promise<GrpcOutcome>((resolve) => call.on('status', (ended) => resolve({ values, status: ended })))
  const keep = (values: string[]) => (_error: unknown, value?: string) =>
    void (value !== undefined && values.push(value))
  const stream = <Call extends ClientReadableStream<string>>(call: Call) => {
    const values: string[] = []
    call.on('data', (value: string) => values.push(value)).on('error', () => {})
    return { call, values, over: outcomeOf(call, values) }
  }
  return {
    unary: (value, options = {}) => {
      const values: string[] = []
      return outcomeOf(calls.unary(value, metadata, options, keep(values)), values)
    },
    collect: (parts) => {
      const values: string[] = []
      const call = calls.collect(metadata, keep(values))
      for (const part of parts) call.write(part)
      call.end()
      return outcomeOf(call, values)
    },
    list: (value) => stream(calls.list(value, metadata)),
    chat: () => stream(calls.chat(metadata)),
  }
}
