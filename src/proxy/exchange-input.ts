import type { Pass } from '../gate/admission.ts'
import type { ReplacedContent } from '../http/request-body.ts'
import type { Incoming } from '../http/response.ts'
import type { RawFields, SwitchedConnection } from '../transport/transport.ts'
import type { ResponseWatch } from './held-response.ts'
import type { ProxyParts } from './proxy-parts.ts'

/** Receives the connection to the upstream and the fields of the 101 response. */
export type OnSwitch = (connection: SwitchedConnection, fields: RawFields) => void

/** The record ends with the exchange, unless the exchange becomes a tunnel. */
export interface ExchangeInput extends Incoming {
  readonly pass: Pass
  readonly parts: ProxyParts
  /** The protocols that the client offers, and what happens when the upstream switches to one. */
  readonly upgrade?: { readonly protocols: string; readonly onSwitch: OnSwitch } | undefined
  /**
   * Replaces the response of the upstream: the client receives no field and no content of it.
   * Called once when the response begins or the exchange fails, unless the client is gone by then.
   * @param setCookies the `Set-Cookie` values of the response; none after a failure
   */
  readonly replace?: ((setCookies: readonly string[]) => void) | undefined
  /** Looks at the response before the client gets it. Absent: it is passed on as it arrives. */
  readonly watch?: ResponseWatch | undefined
  /** Takes the place of the content of the request, which was read already. */
  readonly content?: ReplacedContent | undefined
}
