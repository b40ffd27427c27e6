import { errors } from 'jose'
import { BoundedMap } from '../core/bounded-map.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { isSameSecret } from '../core/random.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { empty, json, type Response } from '../http/response.ts'
import { pageContext, type Pages } from '../pages/pages.ts'
import type { PollRequest, StreamClient } from '../provider/stream-client.ts'
import { carryOut, InvalidState, type SignalParts } from './carry-out.ts'

/**
 * `POST security-events`: push delivery of a security event (RFC 8935 §2). Resolves when it was
 * carried out on every replica, also when no session was concerned, or it was received before.
 * @throws {GatewayError} `ERR_SECURITY_EVENT_INVALID` (400), or `ERR_STORE_UNAVAILABLE` or
 * `ERR_PROVIDER_UNAVAILABLE` (503), for the transmitter to repeat it
 */
export async function securityEvents(request: EndpointRequest, parts: SignalParts): Promise<Response> {
  const { pushSecret } = parts.provider.config.signals ?? {}
  if (pushSecret !== undefined && !isSameSecret(request.authorization ?? '', pushSecret))
    throw new AuthenticationFailed()
  if (request.securityEvent === undefined)
    throw new GatewayError('ERR_SECURITY_EVENT_INVALID', 'Content-Type is not application/secevent+jwt')
  const token = await parts.provider.verifySecurityEvent(request.securityEvent.trim())
  await carryOut(token, parts, request.cause)
  return empty(202)
}

/** The response to a rejected security event (RFC 8935 §2.3). */
export function rejectSecurityEvent(
  error: GatewayError,
  request: EndpointRequest,
  { audit, pages }: Pick<SignalParts, 'audit'> & { readonly pages: Pages },
): Response {
  const { code, status, message, publicText } = error
  audit.record('signal.refused', { code, reason: message }, request.cause)
  if (status >= 500) return pages.refusal(code, pageContext(request))
  return { ...json(status, { err: errorCode(error), description: publicText }, { 'Content-Language': 'en' }), code }
}

/** The transmitter did not send what `signals.push_secret` says. */
class AuthenticationFailed extends GatewayError {
  constructor() {
    super('ERR_SECURITY_EVENT_INVALID', 'Authorization is not that of signals.push_secret')
  }
}

/** The error code of RFC 8935 §2.4 and RFC 8936 §2.6 for a rejected event. */
function errorCode(error: GatewayError): string {
  if (error instanceof AuthenticationFailed) return 'authentication_failed'
  if (error instanceof InvalidState) return 'invalid_state'
  const { cause } = error
  if (cause instanceof errors.JWTClaimValidationFailed && cause.claim === 'iss') return 'invalid_issuer'
  if (cause instanceof errors.JWTClaimValidationFailed && cause.claim === 'aud') return 'invalid_audience'
  const isAboutKey =
    cause instanceof errors.JWKSNoMatchingKey ||
    cause instanceof errors.JWSSignatureVerificationFailed ||
    cause instanceof errors.JOSEAlgNotAllowed
  return isAboutKey ? 'invalid_key' : 'invalid_request'
}

/** How many events are requested at once, and carried out at most. */
const maxEvents = 25
/** The longest token, in characters, as with push delivery. */
const maxTokenBytes = 16 * 1024
/** How long the transmitter may hold a request back, in ms. */
const longPollMs = 30_000
/** How many identifiers of finished events are remembered, to notice a transmitter in a loop. */
const maxRemembered = 1_000

type SetErr = NonNullable<PollRequest['setErrs']>[string]

export interface PollParts {
  readonly streams: Pick<StreamClient, 'poll'>
  readonly signals: SignalParts
}

/**
 * Polls events (RFC 8936), and carries them out like pushed ones. An event is acknowledged in the
 * request after it was carried out. So one that could not be carried out comes again.
 */
export class Poller {
  readonly #parts: PollParts
  #ack: string[] = []
  /** A map, because an event may have the name of a member that every object has. */
  #setErrs = new Map<string, SetErr>()
  /** Events that were carried out. */
  readonly #finished = new BoundedMap<string, true>('signals_carried_out', maxRemembered)

  constructor(parts: PollParts) {
    this.#parts = parts
  }

  /**
   * One request, and the work that its response asks for.
   * @returns `idle` when the transmitter had nothing new, although it responded at once
   * @throws {GatewayError} when the transmitter is unavailable or refuses
   */
  async poll(url: string, signal: AbortSignal): Promise<'progress' | 'waited' | 'idle'> {
    const [ack, setErrs] = [this.#ack, this.#setErrs]
    const request = {
      maxEvents,
      returnImmediately: false,
      ...(ack.length > 0 && { ack }),
      ...(setErrs.size > 0 && { setErrs: Object.fromEntries(setErrs) }),
    }
    const response = await this.#parts.streams.poll(url, request, { timeoutMs: longPollMs, signal })
    // Without a response, the transmitter may not have read the acknowledgements.
    if (response === undefined) return 'waited'
    this.#ack = []
    this.#setErrs = new Map()
    let isNew = false
    for (const [jti, token] of [...response.sets].slice(0, maxEvents)) {
      if (signal.aborted) return 'idle'
      const outcome = await this.#handle(jti, token)
      if (outcome === 'store_unavailable') return 'idle'
      if (outcome === 'done' && !this.#finished.has(jti)) {
        isNew = true
        this.#finished.set(jti, true)
      }
    }
    return isNew ? 'progress' : 'idle'
  }

  async #handle(jti: string, token: unknown): Promise<'done' | 'not_done' | 'store_unavailable'> {
    const { provider, audit, log } = this.#parts.signals
    try {
      if (typeof token !== 'string' || token.length > maxTokenBytes) throw notAToken
      const verified = await provider.verifySecurityEvent(token.trim())
      // Otherwise the acknowledgement would be about another event (RFC 8936 §2.3).
      if (verified.jti !== jti) throw otherIdentifier
      await carryOut(verified, this.#parts.signals)
      this.#ack.push(jti)
      return 'done'
    } catch (error) {
      if (!(error instanceof GatewayError)) {
        log.error('signals.failed', { reason: reason(error) })
        return 'not_done'
      }
      const { code, status, message, publicText } = error
      audit.record('signal.refused', { code, reason: message })
      if (code === 'ERR_STORE_UNAVAILABLE') return 'store_unavailable'
      if (status < 500) this.#setErrs.set(jti, { err: errorCode(error), description: publicText })
      return 'not_done'
    }
  }
}

const notAToken = new GatewayError(
  'ERR_SECURITY_EVENT_INVALID',
  `an event is not a text of at most ${maxTokenBytes} characters`,
)
const otherIdentifier = new GatewayError('ERR_SECURITY_EVENT_INVALID', 'the jti of an event is not its name in "sets"')
