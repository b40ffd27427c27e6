import { isUtf8 } from 'node:buffer'
import type { RuleConfig } from '../config/model/rule.ts'
import type { AuthorizeWithConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import { isWithheld, type JsonValue, readClaim, withheldReason } from '../core/claims.ts'
import type { Clock } from '../core/clock.ts'
import type { Caller } from '../core/credentials.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { printable, reason } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { sha256 } from '../core/random.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { McpRequest } from '../http/mcp-request.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { Metrics } from '../observe/metrics.ts'
import { createOutbound, measuredOutbound, type Outbound } from '../provider/outbound.ts'
import type { PrincipalRecord } from '../session/record/record.ts'

/** How many decisions may be under way at the same time, for each upstream. */
export const maxUnderWay = 256
/** How many decisions are kept, of all upstreams together. */
const maxKept = 10_000
/** The longest time that a decision is kept, in ms. A longer `max-age` is reduced to it. */
const longestKeptMs = 5 * 60_000
/** The longest reason for the log, in characters. */
const maxReasonLength = 200

/** What the policy decision point says about a request. `why` is for the log. */
export type Evaluated =
  | { readonly kind: 'permitted' }
  | { readonly kind: 'denied'; readonly code: 'ERR_FORBIDDEN' | 'ERR_CLAIM_WITHHELD'; readonly why: string }
  | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string }

/** A request that the rules of the configuration admit, and who sends it. */
export interface EvaluatedRequest {
  readonly facts: RequestFacts
  readonly upstream: Pick<UpstreamConfig, 'name'>
  readonly rule: Pick<RuleConfig, 'name'>
  readonly record: PrincipalRecord
  /** Absent: a person with a session. */
  readonly caller: Caller | undefined
}

/** A request of the Access Evaluation API (Authorization API 1.0 §6.1). */
export interface Evaluation {
  readonly subject: Entity
  readonly action: { readonly name: string }
  readonly resource: Entity
  readonly context: {
    readonly client_address: string
    readonly credentials: Caller | 'session'
    /** The message of an MCP client, by its header fields. */
    readonly mcp?: McpRequest
  }
}

interface Entity {
  readonly type: string
  readonly id: string
  readonly properties: Readonly<Record<string, JsonValue | undefined>>
}

/** Shares the decisions that may be under way among people. */
interface Places {
  hasFor(person: string): boolean
  take(person: string): void
  leave(person: string): void
}

interface DecisionPoint {
  readonly outbound: Outbound
  readonly places: Places
}

export interface EvaluationsParts {
  readonly clock: Clock
  readonly metrics: Metrics
  /** Creates the places of an upstream: {@link maxUnderWay}. */
  readonly placesOf: () => Places
}

interface Kept {
  readonly evaluated: Evaluated
  readonly until: number
}

/**
 * Asks a policy decision point whether a request is permitted (OpenID AuthZEN, Authorization API
 * 1.0). Without a usable decision in time, the request is refused.
 */
export class Evaluations {
  readonly #clock: Clock
  readonly #points: ReadonlyMap<AuthorizeWithConfig, DecisionPoint>
  readonly #kept = new BoundedMap<string, Kept>('evaluations', maxKept)
  readonly #underWay = new SingleFlight<string, Evaluated>()

  constructor(
    upstreams: readonly Pick<UpstreamConfig, 'authorizeWith'>[],
    { clock, metrics, placesOf }: EvaluationsParts,
  ) {
    this.#clock = clock
    const configs = upstreams.flatMap(({ authorizeWith }) => authorizeWith ?? [])
    // With fewer connections, the decisions of one person would delay those of all others.
    const outboundFor = (config: AuthorizeWithConfig) =>
      measuredOutbound(createOutbound({ ...config, connections: maxUnderWay }), metrics, () => 'authorize_with')
    this.#points = new Map(
      configs.map((config) => [config, { outbound: outboundFor(config), places: placesOf() }] as const),
    )
  }

  async close(): Promise<void> {
    await this.#underWay.settled()
    await Promise.all([...this.#points.values()].map(({ outbound }) => outbound.close()))
  }

  /**
   * Whether each way is permitted in which the application might read the path. Returns no promise
   * when the decisions are kept.
   */
  evaluate(request: EvaluatedRequest, config: AuthorizeWithConfig): Evaluated | Promise<Evaluated> {
    const withheld = config.claims.find(({ path }) => isWithheld(request.record.claims, path))
    // Without its value, a policy about people who lack a group would permit too much.
    if (withheld !== undefined)
      return { kind: 'denied', code: 'ERR_CLAIM_WITHHELD', why: `${withheld.name}: ${withheldReason}` }
    const [first = permitted, ...others] = evaluationsOf(request, config).map((each) => this.#decide(each, config))
    if (others.length === 0) return first
    return Promise.all([first, ...others]).then((all) => all.find(({ kind }) => kind !== 'permitted') ?? permitted)
  }

  #decide(evaluation: Evaluation, config: AuthorizeWithConfig): Evaluated | Promise<Evaluated> {
    const body = JSON.stringify(evaluation)
    const key = sha256(config.url, body)
    const kept = this.#kept.get(key)
    if (kept !== undefined && this.#clock.now() < kept.until) return kept.evaluated
    const point = this.#points.get(config)
    if (point === undefined) return unavailable('there is no connection to the policy decision point')
    const { places, outbound } = point
    const { id, properties } = evaluation.subject
    const person = JSON.stringify([properties['iss'], id])
    if (!this.#underWay.has(key) && !places.hasFor(person)) return unavailable('too many decisions are under way')
    return this.#underWay.run(key, async () => {
      places.take(person)
      try {
        const { evaluated, until } = await this.#ask(body, config, outbound)
        if (until > this.#clock.now()) this.#kept.set(key, { evaluated, until })
        return evaluated
      } finally {
        places.leave(person)
      }
    })
  }

  async #ask(body: string, { authorization, url }: AuthorizeWithConfig, outbound: Outbound): Promise<Kept> {
    const askedAt = this.#clock.now()
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(authorization !== undefined && { authorization }),
    }
    try {
      const response = await outbound.fetch(url, { method: 'POST', headers, body })
      if (response.status !== 200) return { evaluated: unavailable(`status ${response.status}`), until: askedAt }
      const evaluated = decisionIn(await response.json())
      return { evaluated, until: evaluated.kind === 'unavailable' ? askedAt : askedAt + keptMs(response.headers) }
    } catch (error) {
      return { evaluated: unavailable(reason(error)), until: askedAt }
    }
  }
}

/**
 * What the policy decision point is asked: about the path as it is forwarded, and about the other
 * readings of it (see `CanonicalTarget`).
 */
export function evaluationsOf(request: EvaluatedRequest, config: Pick<AuthorizeWithConfig, 'claims'>): Evaluation[] {
  const { path, otherReadings = [] } = request.facts.target
  const others = otherReadings.map((segments) => asText(`/${segments.join('/')}`))
  return [...new Set([path, ...others])].map((each) => evaluationOf(request, each, config))
}

/** In some readings, each character is one byte of UTF-8. */
function asText(reading: string): string {
  const bytes = Buffer.from(reading, 'latin1')
  // Characters beyond a byte are not of this form.
  return bytes.toString('latin1') === reading && isUtf8(bytes) ? bytes.toString('utf8') : reading
}

function evaluationOf(
  { facts, upstream, rule, record, caller }: EvaluatedRequest,
  path: string,
  { claims }: Pick<AuthorizeWithConfig, 'claims'>,
): Evaluation {
  const { method, host, target, forwarded, mcp } = facts
  const values = claims.map(({ name, path }) => [name, readClaim(record.claims, path)] as const)
  return {
    subject: {
      // The gateway cannot tell whether an access token is that of a person.
      type: caller === 'service_account' || caller === 'client_certificate' ? caller : 'user',
      id: record.sub,
      properties: { iss: record.iss, ...Object.fromEntries(values) },
    },
    action: { name: method },
    resource: {
      type: 'route',
      id: path,
      properties: {
        upstream: upstream.name,
        hostname: host,
        path,
        query: target.query === '' ? undefined : target.query.slice(1),
        rule: rule.name,
      },
    },
    context: {
      client_address: forwarded.clientAddress,
      credentials: caller ?? 'session',
      ...(mcp?.fault === undefined && mcp && { mcp }),
    },
  }
}

/** The decision of a response (§6.2). Only `true` permits. */
function decisionIn(content: unknown): Evaluated {
  const { decision, context } = isObject(content) ? content : {}
  if (decision === true) return permitted
  if (decision !== false) return unavailable('the response has no decision')
  const why = isObject(context) && Object.keys(context).length > 0 ? `: ${JSON.stringify(context)}` : ''
  return {
    kind: 'denied',
    code: 'ERR_FORBIDDEN',
    why: `authorize_with denies it${printable(why.slice(0, maxReasonLength))}`,
  }
}

/**
 * How long a response may be used again, in ms (RFC 9111 §5.2.2). Without `max-age`: not at all.
 */
function keptMs(headers: Headers): number {
  const directives = (headers.get('cache-control') ?? '').toLowerCase().split(/\s*,\s*/)
  if (directives.some((each) => /^no-(?:store|cache)(?:=|$)/.test(each))) return 0
  const seconds = Number(directives.find((each) => /^max-age=\d{1,9}$/.test(each))?.slice('max-age='.length) ?? 0)
  const age = Number(/^\d{1,9}$/.exec(headers.get('age') ?? '')?.[0] ?? 0)
  return Math.max(0, Math.min((seconds - age) * 1000, longestKeptMs))
}

const permitted: Evaluated = { kind: 'permitted' }

function unavailable(why: string): Evaluated {
  return { kind: 'unavailable', code: 'ERR_DECISION_UNAVAILABLE', why: `authorize_with: ${why}` }
}
