import type { Socket } from 'node:net'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError } from '../core/errors.ts'
import type { Pass } from '../gate/admission.ts'
import type { UpgradeClient } from '../http/client-messages.ts'
import { hasBody } from '../http/request-body.ts'
import { type Incoming, type Response, writeResponse } from '../http/response.ts'
import { carriedProtocols } from '../http/upgrade-field.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { problem, type ProblemOptions } from '../pages/problem.ts'
import type { RawFields, SwitchedConnection } from '../transport/transport.ts'
import { fieldLine } from '../wire/fields.ts'
import type { Addresses } from './addresses.ts'
import { responseHeaders } from './client-response.ts'
import type { ExchangeInput } from './exchange-input.ts'
import { Exchange } from './exchange.ts'
import type { ProxyParts } from './proxy-parts.ts'
import { Tunnel } from './tunnel.ts'

/**
 * Sends an admitted request to its upstream and the response back. No header may be set on `res`
 * before, because Node.js would then merge fields of the same name.
 */
export function carry(
  incoming: Incoming,
  pass: Pass,
  parts: ProxyParts,
  more: Pick<ExchangeInput, 'replace' | 'content' | 'watch'> = {},
): void {
  const { req, res, facts, record, addedFields } = incoming
  const input: ExchangeInput = { req, res, facts, record, addedFields, pass, parts, ...more }
  // Node.js parses the chunks that arrived with the head only after this call. If a chunk or the
  // trailer section is malformed, the request must not reach the upstream.
  if (req.headers['transfer-encoding'] === undefined) begin(input)
  else setImmediate(begin, input)
}

function begin(input: ExchangeInput): void {
  const { req, res, record } = input
  // The client is gone, or another response closes the connection (RFC 9112 §9.6). The connection
  // stays open for a while, so that the client gets that response.
  if (req.socket.writableEnded || res.destroyed) {
    record.end(undefined, false)
    return
  }
  new Exchange(input).start()
}

/** A request for another protocol. Node's server has released its socket. */
export interface IncomingUpgrade extends Pick<Incoming, 'facts' | 'record'>, UpgradeClient {
  /** What the client has sent after the head. */
  readonly head: Buffer
}

/**
 * Sends an admitted request for another protocol, usually a WebSocket, to its upstream. After a 101
 * the connection becomes a tunnel. Any other response is passed on, and the connection is closed.
 */
export function carryUpgrade(
  { facts, record, head: received, ...client }: IncomingUpgrade,
  pass: Pass,
  parts: ProxyParts,
): void {
  const { req, socket, reply: res } = client
  // Node's server has released the socket, and an error without a listener ends the process.
  socket.on('error', () => {})
  // A client that ends its side before the response has begun is gone. The request may have waited
  // for earlier responses, so `end` may be past.
  if (socket.readableEnded) {
    socket.destroy()
    record.end(undefined, false)
    return
  }
  // Node.js treats the content as data of the other protocol. The upstream would read it as a
  // second request.
  if (hasBody(req)) {
    refuseUpgrade(client, record, 'ERR_REQUEST_MALFORMED')
    return
  }

  // HTTP/1.0 cannot switch protocols (RFC 9110 §7.8).
  const protocols = req.httpVersionMinor === 0 ? '' : carriedProtocols(req.headers.upgrade, pass.upstream.upgrade)
  const onSwitch = (upstream: SwitchedConnection, rawHeaders: RawFields): void => {
    const fields = switchingFields(rawHeaders, protocols, {
      parts,
      addresses: parts.upstreams.of(pass.upstream).addressesAt(facts.host).fields,
    })
    const chosen = { upgrade: valueIn(rawHeaders, 'upgrade'), accept: valueIn(rawHeaders, 'sec-websocket-accept') }
    const fault = fields instanceof GatewayError ? fields : switchFault(res.switchProtocols(fields, chosen))
    if (fault !== undefined) {
      record.trace?.upstreamEnded(fault.code)
      parts.log.warn('upstream.failed', {
        request: record.id,
        upstream: pass.upstream.name,
        code: fault.code,
        reason: fault.message,
      })
      upstream.socket.destroy()
      refuseUpgrade(client, record, fault.code)
      return
    }
    const isWebSocket = chosen.upgrade.toLowerCase() === 'websocket'
    const sides = { client: socket as Socket, upstream, head: received }
    new Tunnel({ ...sides, isWebSocket, session: pass.session, isOver: pass.isOver, record, parts }).join()
  }
  const upgrade = protocols === '' ? undefined : { protocols, onSwitch }
  new Exchange({ req, res, pass, facts, record, parts, upgrade }).start()
}

/** Refuses an upgrade. No WebSocket client follows a redirect. */
export function refuseUpgrade(
  client: UpgradeClient,
  record: RequestRecord,
  code: ErrorCode,
  options: Partial<ProblemOptions> = {},
): void {
  const response = problem(code, { requestId: record.id, ...options })
  record.code = code
  respondToUpgrade(client, record, response)
}

/** Sends a response of the gateway to a request for another protocol. */
export function respondToUpgrade({ req, reply: res }: UpgradeClient, record: RequestRecord, response: Response): void {
  res.once('close', () => record.endWith(res))
  record.bytes = writeResponse({ req, res }, response)
}

/** The fields of the response that switches protocols, without those of the connection. */
function switchingFields(
  rawHeaders: RawFields,
  protocols: string,
  { parts, addresses }: { readonly parts: ProxyParts; readonly addresses: Addresses },
): string[] | GatewayError {
  const chosen = valueIn(rawHeaders, 'upgrade')
  // A server may only switch to an offered protocol (RFC 9110 §7.8).
  if (!protocols.toLowerCase().split(', ').includes(chosen.toLowerCase()))
    return new GatewayError('ERR_UPSTREAM_RESPONSE', 'the upstream switched to a protocol that it was not offered')
  try {
    const fields = responseHeaders(rawHeaders, {
      isGatewayCookie: parts.isGatewayCookie,
      caching: 'anybody',
      addresses,
      status: 101,
    })
    for (let at = 0; at + 1 < fields.length; at += 2)
      // The last guard: whatever read the response has rejected such a field already.
      if (fieldLine(fields[at] as string, fields[at + 1] as string) === undefined)
        return new GatewayError('ERR_UPSTREAM_RESPONSE', `the field "${fields[at]}" has an invalid name or value`)
    return fields
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

function switchFault(hasSwitched: boolean): GatewayError | undefined {
  if (hasSwitched) return undefined
  return new GatewayError('ERR_UPSTREAM_RESPONSE', 'the upstream has not accepted the WebSocket')
}

function valueIn(rawHeaders: RawFields, name: string): string {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.toLowerCase() === name) return (rawHeaders[at + 1] ?? '').trim()
  return ''
}
