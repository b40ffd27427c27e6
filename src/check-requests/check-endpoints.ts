import { endpoints } from '../config/endpoints.ts'
import { GatewayError } from '../core/errors.ts'
import type { ClientMessage } from '../http/client-messages.ts'
import { cookies, empty, redirect, type Response, withHeaders } from '../http/response.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { type CheckRequest, checkRequestInFields, checkRequestInTarget } from './check-request.ts'
import type { ForwardAuth, Permission, Refusal } from './forward-auth.ts'

/** Responds to the check request of a proxy. */
export type CheckHandler = (req: ClientMessage, record: RequestRecord) => Promise<Response>

type Decision = Permission | Refusal

/**
 * The endpoints for the check requests of other proxies over HTTP.
 *
 * They are found by the target as it was received, before any dot segment is resolved. Otherwise
 * the path of a client, behind that of an endpoint, could lead to another URL of the gateway, and
 * the proxy would take the response for permission.
 */
export class ForwardAuthEndpoints {
  readonly #forwardAuth: ForwardAuth
  readonly #prefix: string
  readonly #responses: ReadonlyMap<string, (decision: Decision) => Response>

  constructor(reservedPrefix: string, forwardAuth: ForwardAuth) {
    this.#forwardAuth = forwardAuth
    this.#prefix = reservedPrefix
    this.#responses = new Map([
      [endpoints.forwardAuth.name, asResponse],
      [endpoints.authRequest.name, asStatus],
      [endpoints.authResponse.name, asRefusal],
    ])
  }

  /** The handler for a target that belongs to one of the endpoints; `undefined` for all others. */
  handlerOf(target: string): CheckHandler | undefined {
    if (!target.startsWith(this.#prefix + endpoints.forwardAuth.name)) return undefined
    const rest = target.slice(this.#prefix.length)
    const inTarget = `${endpoints.extAuthz.name}/`
    if (rest.startsWith(inTarget)) {
      const asked = rest.slice(inTarget.length - 1)
      return (req, record) => this.#respond(() => checkRequestInTarget(req, asked), record, asResponse)
    }
    const [name = '', query = ''] = rest.split('?', 2)
    const toResponse =
      query === absentAsEmpty && name === endpoints.forwardAuth.name ? withEmptyFields : this.#responses.get(name)
    const isFirst = name === endpoints.authRequest.name
    return (
      toResponse &&
      ((req, record) => this.#respond(() => ({ ...checkRequestInFields(req), isFirst }), record, toResponse))
    )
  }

  async #respond(
    read: () => CheckRequest,
    record: RequestRecord,
    response: (decision: Decision) => Response,
  ): Promise<Response> {
    return response(await this.#forwardAuth.check(read, record))
  }
}

/**
 * Refuses a request that reaches one of the endpoints by another spelling of its path: see
 * {@link ForwardAuthEndpoints}.
 */
export function refuseOtherSpelling(): never {
  throw new GatewayError('ERR_NO_ROUTE', 'a check request has to name its endpoint literally')
}

/** For proxies that send all other responses to the client: Traefik, Caddy, HAProxy, Envoy. */
function asResponse(decision: Decision): Response {
  if (decision.kind === 'refusal') return decision.response
  const { set, remove, setCookies } = decision
  return empty(200, {
    ...cookies(setCookies),
    ...Object.fromEntries(set),
    ...(remove.length > 0 && { [removalField]: remove.join(', ') }),
  })
}

/** The query with which a proxy asks for an empty field in place of each absent one. */
const absentAsEmpty = 'absent=empty'

/** For Caddy 2.6, which copies a placeholder in place of a field that is absent. */
function withEmptyFields(decision: Decision): Response {
  const response = asResponse(decision)
  if (decision.kind === 'refusal') return response
  return withHeaders(response, Object.fromEntries(decision.remove.map((name) => [name, ''])))
}

/** The field with which Envoy's `ext_authz` removes fields of a request. */
const removalField = 'X-Envoy-Auth-Headers-To-Remove'

/**
 * For nginx, which understands only a success, 401 and 403, and keeps the header fields. 401: the
 * response is a redirect, or asks for a sign-in.
 */
function asStatus(decision: Decision): Response {
  if (decision.kind === 'permission') return asResponse(decision)
  const { status, headers, code } = decision.response
  const isRedirect = status < 400
  return { status: isRedirect || status === 401 ? 401 : 403, headers, body: '', ...(code !== undefined && { code }) }
}

/**
 * The response to a request that `auth-request` has refused. If it would be allowed by now, the
 * client sends it again. The identity must not reach the client.
 */
function asRefusal(decision: Decision): Response {
  if (decision.kind === 'refusal') return decision.response
  return redirect({ location: decision.url, setCookies: decision.setCookies })
}
