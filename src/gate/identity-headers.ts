import { commonHeaderLimitBytes } from '../config/header-size.ts'
import type { HeaderConfig } from '../config/model/header.ts'
import type { RuleConfig } from '../config/model/rule.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { Claims } from '../core/claims.ts'
import type { SessionKey } from '../core/names.ts'
import { canonicalTarget } from '../http/request-target.ts'
import {
  droppedTexts,
  headersWithoutValue,
  identityHeaders,
  type IdentityHeaders,
  type SentHeaders,
  type BearerTokens,
} from '../identity/claim-headers.ts'
import {
  type AnonymousHeaders,
  anonymousHeaders,
  type ForwardableFacts,
  requestFields,
} from '../identity/request-headers.ts'
import type { SignedIdentities, SignedIdentity } from '../identity/signed/signed-identity.ts'
import type { Log } from '../observe/log.ts'
import type { Principal, PrincipalRecord } from '../session/record/record.ts'
import { createRouteTable } from './rules/route-table.ts'

/** The headers of an upstream, or of one of its rules. */
type HeaderList = readonly HeaderConfig[]

/**
 * The header fields that the gateway adds to requests for an upstream. What depends on the person
 * is computed once for each version of the session record, what depends on the request for each
 * request.
 */
export class HeadersForUpstream {
  readonly #ofRecord = new WeakMap<PrincipalRecord, Map<HeaderList, PersonHeaders>>()
  readonly #ofAnybody = new WeakMap<HeaderList, AnonymousHeaders>()
  readonly #identities: Pick<SignedIdentities, 'of'>
  readonly #log: Log
  readonly #logAbsence: ReturnType<typeof createAbsenceLog>
  readonly #overBudget = new WeakSet<UpstreamConfig>()

  constructor({ identities, log }: { readonly identities: Pick<SignedIdentities, 'of'>; readonly log: Log }) {
    this.#identities = identities
    this.#log = log
    this.#logAbsence = createAbsenceLog(log)
  }

  /** Names and values, alternating, for a request without a session. */
  forAnybody(facts: ForwardableFacts, upstream: UpstreamConfig, rule: RuleConfig): readonly string[] {
    const anonymous = this.#anonymous(rule.headers ?? upstream.headers)
    return withFacts(anonymous.constants, anonymous, facts, upstream)
  }

  /** For a request of a signed-in person, or of a caller. */
  forPerson(
    facts: ForwardableFacts,
    upstream: UpstreamConfig,
    rule: RuleConfig,
    principal: Principal,
  ): IdentityHeaders {
    const headers = this.#identity(upstream, rule.headers ?? upstream.headers, principal)
    const anonymous = this.#anonymous(rule.headers ?? upstream.headers)
    if ('missing' in headers || anonymous.facts.length === 0) return headers
    return { ...headers, fields: withFacts(headers.fields, anonymous, facts, upstream) }
  }

  #anonymous(configured: HeaderList): AnonymousHeaders {
    let found = this.#ofAnybody.get(configured)
    if (found === undefined) this.#ofAnybody.set(configured, (found = anonymousHeaders(configured)))
    return found
  }

  #identity(upstream: UpstreamConfig, configured: HeaderList, { record, session }: Principal): IdentityHeaders {
    const { signedIdentity } = upstream
    const signed = signedIdentity && this.#identities.of(record, signedIdentity)
    const byList = this.#ofRecord.get(record)
    const known = byList?.get(configured)
    if (known !== undefined && known.signed === signed) return known.all
    const unsigned = known?.unsigned ?? identityHeaders(configured, record.claims, record.tokens)
    const all = signedIdentity && signed ? withSigned(unsigned, signedIdentity.header, signed) : unsigned
    if (session?.isTransient !== true) this.#keep(record, configured, { unsigned, signed, all })
    // A JWT is renewed often, with the same claims.
    if (known === undefined) {
      if ('fields' in unsigned) this.#logAbsence(upstream, configured, unsigned)
      if (all.dropped.length > 0)
        this.#log.warn('headers.dropped', {
          session: session?.key,
          upstream: upstream.name,
          headers: droppedTexts(all.dropped),
          ...(session === undefined && { caller: record.sub }),
          hint: 'The application gets the request without these headers. For a longer value raise max_bytes, or set too_long: trim. For characters that a header cannot carry set encode. To deny such requests, set required: true.',
        })
      if ('fields' in all) this.#logBudget(upstream, session?.key, all.fields)
    }
    return all
  }

  #keep(record: PrincipalRecord, configured: HeaderList, headers: PersonHeaders): void {
    // A connection keeps the text of a frozen list.
    if ('fields' in headers.all) Object.freeze(headers.all.fields)
    const byList = this.#ofRecord.get(record)
    if (byList === undefined) this.#ofRecord.set(record, new Map([[configured, headers]]))
    else byList.set(configured, headers)
  }

  /** Logs once for each upstream that headers may be too large for it. */
  #logBudget(upstream: UpstreamConfig, session: SessionKey | undefined, fields: readonly string[]): void {
    // A name has a colon and a space behind it, a value CR and LF.
    const bytes = fields.reduce((sum, text) => sum + text.length + 2, 0)
    if (bytes <= commonHeaderLimitBytes || this.#overBudget.has(upstream)) return
    this.#overBudget.add(upstream)
    const hint =
      'Many applications reject requests with more than 8 KiB of headers (400 or 431). Lower max_bytes, filter groups at the provider, or raise the limit of the application.'
    this.#log.warn('headers.over_budget', { session, upstream: upstream.name, bytes, hint })
  }
}

/** The headers of one session record for one list of headers. */
interface PersonHeaders {
  readonly unsigned: IdentityHeaders
  /** Absent when the upstream gets no signed identity. */
  readonly signed: SignedIdentity | undefined
  /** The others, and the header with the signed identity. */
  readonly all: IdentityHeaders
}

function withSigned(headers: IdentityHeaders, name: string, signed: SignedIdentity): IdentityHeaders {
  if ('missing' in headers) return headers
  if ('why' in signed) return { missing: name, dropped: [...headers.dropped, { name, why: signed.why }] }
  return { fields: [...headers.fields, name, signed.token], dropped: [...headers.dropped, ...signed.dropped] }
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
function createAbsenceLog(log: Log): (upstream: UpstreamConfig, configured: HeaderList, headers: SentHeaders) => void {
  const logged = new WeakSet<HeaderConfig>()
  // Its first session marks all headers of a list as logged, so the next ones need no comparison.
  const examined = new WeakSet<HeaderList>()
  return (upstream, configured, headers) => {
    if (examined.has(configured)) return
    examined.add(configured)
    const absent = headersWithoutValue(configured, headers)
    for (const header of configured) {
      if (absent.includes(header) && !logged.has(header))
        log.info('headers.claim_absent', {
          upstream: upstream.name,
          header: header.name,
          hint: 'If nobody has a value, compare the claim with what the provider sends (scopes and id_token_claims of the provider).',
        })
      logged.add(header)
    }
  }
}

/**
 * The identity header fields of a logout call: those that a request of the person for the same
 * address would have. Names and values, alternating. The person need not meet the requirements of
 * the rule, because the call only ends what began earlier.
 * @param target path and query, as clients use them
 * @returns the name of a required header without a value, if there is one
 */
export function headersForLogoutCall(
  upstream: UpstreamConfig,
  { method, target }: { readonly method: string; readonly target: string },
  person: { readonly claims: Claims; readonly tokens: BearerTokens },
  facts: ForwardableFacts,
): readonly string[] | { readonly missing: string } {
  const routes = createRouteTable([{ ...upstream, hosts: [] }])
  const configured = routes.route('', method, canonicalTarget(target))?.rule.headers ?? upstream.headers
  const headers = identityHeaders(configured, person.claims, person.tokens)
  if ('missing' in headers) return headers
  return [...headers.fields, ...requestFields(anonymousHeaders(configured), facts, upstream.path)]
}
