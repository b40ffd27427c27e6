import { GatewayError } from '../core/errors.ts'
import { requestId, type TrustedProxies } from '../http/forwarded.ts'
import type { Response } from '../http/response.ts'
import { RequestRecord, type RequestSink } from '../observe/request-record.ts'
import { type CheckRequest, validCheckRequest } from './check-request.ts'
import type { ForwardAuth, Permission } from './forward-auth.ts'
import type { UnaryMethod } from './grpc.ts'
import { type Message, messageIn, messagesIn, readMessage, textIn, writeMessage } from './protobuf.ts'

/** The method of `envoy.service.auth.v3.Authorization`. */
export const checkMethod = '/envoy.service.auth.v3.Authorization/Check'

/** The codes of `google.rpc.Status`. */
const codes = { ok: 0, permissionDenied: 7 } as const

/** What happens to a field of the same name (`HeaderValueOption.HeaderAppendAction`). */
const overwrite = 2

export interface ExtAuthzParts {
  readonly forwardAuth: ForwardAuth
  readonly trusted: TrustedProxies
  readonly sink: RequestSink
}

/**
 * Responds to the checks of Envoy over gRPC: a `CheckRequest` becomes a `CheckResponse`. A
 * malformed message is refused.
 */
export function createCheck({ forwardAuth, trusted, sink }: ExtAuthzParts): UnaryMethod {
  return async (message, peer) => {
    const request = readRequest(message)
    const headers = 'headers' in request ? request.headers : {}
    const record = new RequestRecord('', requestId(headers, peer, trusted), sink)
    record.client = peer ?? 'unknown'
    record.askedBy = record.client
    const decision = await forwardAuth.check(() => toCheckRequest(request, peer), record)
    const response = decision.kind === 'permission' ? undefined : decision.response
    record.bytes = response === undefined ? 0 : Buffer.byteLength(response.body)
    record.end(response?.status ?? 200, true)
    return response === undefined ? okResponse(decision as Permission) : deniedResponse(response)
  }
}

/** The parts of a `CheckRequest` that the gateway reads. */
interface EnvoyCheckRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly host: string
  readonly scheme: string
  /** The address of the client of Envoy; empty when it is unknown. */
  readonly source: string
  /** The verified certificate of the client (`include_peer_certificate`), or empty. */
  readonly certificate: string
  readonly headers: Readonly<Record<string, string>>
}

/** The field numbers are those of envoy/service/auth/v3/attribute_context.proto. */
function readRequest(bytes: Uint8Array): EnvoyCheckRequest | { readonly malformed: string } {
  try {
    const attributes = messageIn(readMessage(bytes), 1)
    const peer = messageIn(attributes, 1)
    const socketAddress = messageIn(messageIn(peer, 1), 1)
    const http = messageIn(messageIn(attributes, 4), 2)
    const [method, path, host, scheme] = [2, 4, 5, 6].map((number) => textIn(http, number)) as Four
    const [source, certificate] = [textIn(socketAddress, 2), textIn(peer, 5)]
    return { method, path, host, scheme, source, certificate, headers: headersIn(http) }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return { malformed: error.message }
  }
}

type Four = [string, string, string, string]

/** `headers`, or `header_map` when Envoy is configured to send that (`encode_raw_headers`). */
function headersIn(http: Message): Readonly<Record<string, string>> {
  const found: Record<string, string> = Object.create(null) as Record<string, string>
  const add = (name: string, value: string) => {
    const lower = name.toLowerCase()
    if (lower === '' || lower.startsWith(':')) return
    const before = found[lower]
    found[lower] = before === undefined ? value : `${before}${lower === 'cookie' ? '; ' : ', '}${value}`
  }
  for (const entry of messagesIn(http, 3)) add(textIn(entry, 1), textIn(entry, 2))
  for (const entry of messagesIn(messageIn(http, 13), 1)) add(textIn(entry, 1), textIn(entry, 2) || textIn(entry, 3))
  return found
}

function toCheckRequest(request: ReturnType<typeof readRequest>, peer: string | undefined): CheckRequest {
  if ('malformed' in request)
    throw new GatewayError('ERR_FORWARD_AUTH', `the CheckRequest is malformed: ${request.malformed}`)
  const { method, path, host, scheme, source, certificate, headers } = request
  for (const [field, value] of Object.entries({ method, path, host, scheme, 'source.address': source }))
    if (value === '') throw new GatewayError('ERR_FORWARD_AUTH', `${field} is missing in the CheckRequest`)
  const forwardedFor = headers['x-forwarded-for']
  return validCheckRequest({
    method,
    target: path,
    host: host.toLowerCase(),
    // With a load balancer before Envoy, this is the scheme that the client used.
    proto: (headers['x-forwarded-proto'] ?? scheme).toLowerCase(),
    forwardedFor: forwardedFor === undefined ? source : `${forwardedFor}, ${source}`,
    // Envoy passes on what its client writes, and states the certificate beside the fields.
    headers: { ...headers, 'client-cert': certificate === '' ? undefined : asByteSequence(certificate) },
    peer,
    removesListed: true,
  })
}

/** A percent-encoded PEM certificate as `Client-Cert` has it (RFC 9440 §2.1). */
function asByteSequence(certificate: string): string {
  const pem = certificate.replaceAll(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return `:${pem.replaceAll(/-----[A-Z ]+-----|\s/g, '')}:`
}

/** The field numbers are those of envoy/service/auth/v3/external_auth.proto. */
function okResponse({ set, remove, setCookies }: Permission): Uint8Array {
  const response = writeMessage([
    ...set.map(([name, value]) => [2, headerOption(name, Buffer.from(value, 'latin1'))] as const),
    ...remove.map((name) => [5, name] as const),
    ...setCookies.map((cookie) => [6, added('Set-Cookie', cookie)] as const),
  ])
  return writeMessage([
    [1, writeMessage([[1, codes.ok]])],
    [3, response],
  ])
}

function deniedResponse({ status, headers, body }: Response): Uint8Array {
  const fields = Object.entries(headers).flatMap(([name, value]) =>
    typeof value === 'string'
      ? [[2, headerOption(name, Buffer.from(value, 'latin1'))] as const]
      : value.map((each) => [2, added(name, each)] as const),
  )
  const response = writeMessage([[1, writeMessage([[1, status]])], ...fields, [3, body]])
  return writeMessage([
    [1, writeMessage([[1, codes.permissionDenied]])],
    [2, response],
  ])
}

/** A field that replaces those of the same name. */
function headerOption(name: string, value: Buffer): Uint8Array {
  return writeMessage([
    [1, headerValue(name, value)],
    [3, overwrite],
  ])
}

/** A field beside those of the same name: the default action. */
function added(name: string, value: string): Uint8Array {
  return writeMessage([[1, headerValue(name, Buffer.from(value, 'latin1'))]])
}

/** A text has to be UTF-8. Other bytes are in `raw_value`. */
function headerValue(name: string, value: Buffer): Uint8Array {
  const isUtf8 = Buffer.from(value.toString('utf8')).equals(value)
  return writeMessage([
    [1, name.toLowerCase()],
    [isUtf8 ? 2 : 3, value],
  ])
}
