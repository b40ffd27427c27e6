import type { HeaderConfig, UpstreamConfig } from '../config/model.ts'
import { headersWithoutValue, identityHeaders, type IdentityHeaders } from '../identity/claim-headers.ts'
import {
  type AnonymousHeaders,
  anonymousHeaders,
  type ForwardableFacts,
  requestFields,
} from '../identity/request-headers.ts'
import type { Log } from '../observe/log.ts'
import type { StoredSession } from '../session/record.ts'

/**
 * The header fields that the gateway adds to requests for an upstream. What depends on the person
 * is computed once for each version of the session record, what depends on the request for each
 * request.
 */
export class HeadersForUpstream {
  readonly #ofRecord = new WeakMap<StoredSession['record'], Map<UpstreamConfig, IdentityHeaders>>()
  readonly #ofAnybody = new WeakMap<UpstreamConfig, AnonymousHeaders>()
  readonly #log: Log
  readonly #logAbsence: ReturnType<typeof createAbsenceLog>

  constructor(log: Log) {
    this.#log = log
    this.#logAbsence = createAbsenceLog(log)
  }

  /** Names and values, alternating, for a request without a session. */
  forAnybody(facts: ForwardableFacts, upstream: UpstreamConfig): readonly string[] {
    const anonymous = this.#anonymous(upstream)
    return withFacts(anonymous.constants, anonymous, facts, upstream)
  }

  /** For a request of a signed-in person. */
  forPerson(facts: ForwardableFacts, upstream: UpstreamConfig, session: StoredSession): IdentityHeaders {
    const headers = this.#identity(upstream, session)
    const anonymous = this.#anonymous(upstream)
    if ('missing' in headers || anonymous.facts.length === 0) return headers
    return { ...headers, fields: withFacts(headers.fields, anonymous, facts, upstream) }
  }

  #anonymous(upstream: UpstreamConfig): AnonymousHeaders {
    let found = this.#ofAnybody.get(upstream)
    if (found === undefined) this.#ofAnybody.set(upstream, (found = anonymousHeaders(upstream.headers)))
    return found
  }

  #identity(upstream: UpstreamConfig, { key, record }: StoredSession): IdentityHeaders {
    const byUpstream = this.#ofRecord.get(record) ?? new Map<UpstreamConfig, IdentityHeaders>()
    this.#ofRecord.set(record, byUpstream)
    let headers = byUpstream.get(upstream)
    if (headers === undefined) {
      headers = identityHeaders(upstream.headers, record.claims, record.tokens)
      byUpstream.set(upstream, headers)
      if ('fields' in headers) this.#logAbsence(upstream, headers)
      if (headers.dropped.length > 0)
        this.#log.warn('headers.dropped', { session: key, upstream: upstream.name, headers: headers.dropped })
    }
    return headers
  }
}

function withFacts(
  fields: readonly string[],
  anonymous: AnonymousHeaders,
  facts: ForwardableFacts,
  { path }: UpstreamConfig,
): readonly string[] {
  return anonymous.facts.length === 0 ? fields : [...fields, ...requestFields(anonymous, facts, path)]
}

/**
 * Logs a header without a value once, unless an earlier session had a value for it. A claim that
 * nobody has indicates a mistake in the configuration or at the provider. A claim that some people
 * lack does not.
 */
function createAbsenceLog(
  log: Log,
): (upstream: UpstreamConfig, headers: Extract<IdentityHeaders, { fields: unknown }>) => void {
  const logged = new WeakSet<HeaderConfig>()
  return (upstream, headers) => {
    const absent = headersWithoutValue(upstream.headers, headers)
    for (const header of upstream.headers) {
      if (absent.includes(header) && !logged.has(header))
        log.info('headers.claim_absent', {
          upstream: upstream.name,
          header: header.name,
          hint: 'If nobody has a value, compare the claim with what the provider sends (provider.scopes, provider.id_token_claims).',
        })
      logged.add(header)
    }
  }
}
