// Claims from APIs of the provider (`claims_from`) in a session.
import type { ApiClaimConfig } from '../../config/model/provider.ts'
import { type ApiReading, type Claims, isWithheld, type JsonValue, readClaim, withWithheld } from '../../core/claims.ts'
import { isWithin } from '../../core/clock.ts'
import { isObject } from '../../core/json.ts'
import type { ApiClaim, SessionRecord } from './record.ts'

/**
 * How long a value counts while its API is unavailable, in ms. After that, the claim is withheld.
 */
const keptMs = 60 * 60_000
/** When a claim is read again that could not be read, in ms, unless the API says it. */
const soonMs = 30_000
/** At the earliest. */
const leastMs = 1_000
/** The same for a failure that another attempt will hardly change. */
const laterMs = 5 * 60_000

type Read = Pick<SessionRecord, 'api_claims'>

/** The claims to read when UserInfo is read. */
export function readableNow(
  configured: readonly ApiClaimConfig[],
  { api_claims }: Read,
  now: number,
): ApiClaimConfig[] {
  return configured.filter(({ id }) => (api_claims?.[id]?.due_at ?? now) <= now)
}

/** Whether a claim is due although UserInfo is not. */
export function isAnyDue(configured: readonly ApiClaimConfig[], { api_claims }: Read, now: number): boolean {
  return configured.some(({ id }) => {
    const known = api_claims?.[id]
    return known === undefined || (known.due_at !== undefined && known.due_at <= now)
  })
}

/** The claims that were never read for a session, which began before `claims_from` named them. */
export function neverRead(configured: readonly ApiClaimConfig[], { api_claims }: Read): readonly string[] {
  return configured.filter(({ id }) => api_claims?.[id] === undefined).map(({ name }) => name)
}

/**
 * The claims that do not count, and were to be read before `now`: they are older than an hour, or
 * could not be read.
 * @param dueAt when those without an interval of their own were to be read
 */
export function overdue(
  configured: readonly ApiClaimConfig[],
  { api_claims }: Read,
  dueAt: number,
  now: number,
): readonly string[] {
  const isOverdue = ({ id }: ApiClaimConfig) => {
    const known = api_claims?.[id]
    if (known?.read_at === undefined) return isUnread(known, now)
    return now >= (known.due_at ?? dueAt) && !isWithin(keptMs, known.read_at, now)
  }
  return configured.filter(isOverdue).map(({ name }) => name)
}

/** Whether a claim that could not be read is due. */
export function isAnyUnread(configured: readonly ApiClaimConfig[], { api_claims }: Read, now: number): boolean {
  return configured.some(({ id }) => isUnread(api_claims?.[id], now))
}

function isUnread(known: ApiClaim | undefined, now: number): boolean {
  return known?.read_at === undefined && known?.due_at !== undefined && now >= known.due_at
}

/**
 * Adds the claims of APIs to those of UserInfo and the ID Token. A claim that was not read now
 * keeps its value of `before`, or stays withheld.
 */
export function withApiClaims(
  claims: Claims,
  configured: readonly ApiClaimConfig[],
  readings: ReadonlyMap<string, ApiReading>,
  before: Pick<SessionRecord, 'claims' | 'api_claims'> | undefined,
  now: number,
): Pick<SessionRecord, 'claims' | 'api_claims'> {
  if (configured.length === 0) return { claims }
  const entries: [string, ApiClaim][] = []
  let all = claims
  for (const { id, name, isMerged, everyMs } of configured) {
    const [reading, known] = [readings.get(id), before?.api_claims?.[id]]
    const entry = entryOf(reading, known, everyMs, now)
    const added = !isMerged ? undefined : reading?.kind === 'value' ? [reading.value ?? []].flat() : known?.added
    entries.push([id, { ...entry, ...(entry.read_at !== undefined && added && { added }) }])
    if (entry.read_at === undefined || (isMerged && added === undefined)) all = withWithheld(all, [name])
    else if (added !== undefined) all = merged(all, name, added)
    else if (reading?.kind === 'value') all = withValue(all, name, reading.value)
    else all = kept(all, name, before?.claims ?? {})
  }
  return { claims: all, api_claims: Object.fromEntries(entries) }
}

function entryOf(
  reading: ApiReading | undefined,
  known: ApiClaim | undefined,
  everyMs: number | undefined,
  now: number,
): ApiClaim {
  switch (reading?.kind) {
    case undefined:
      return known ?? {}
    case 'value':
      return { read_at: now, ...(everyMs !== undefined && { due_at: now + everyMs }) }
    case 'unavailable': {
      const isKept = known?.read_at !== undefined && isWithin(keptMs, known.read_at, now)
      const due_at = now + Math.max(reading.retryAfterMs ?? soonMs, leastMs)
      return { ...(isKept && { read_at: known.read_at }), due_at }
    }
    case 'unusable':
      return { due_at: now + laterMs }
  }
}

function kept(claims: Claims, name: string, before: Claims): Claims {
  return isWithheld(before, [name]) ? withWithheld(claims, [name]) : withValue(claims, name, readClaim(before, [name]))
}

/** Adds values to those that the provider has sent itself, unless it has withheld some. */
function merged(claims: Claims, name: string, values: readonly JsonValue[]): Claims {
  if (isWithheld(claims, [name])) return claims
  return withValue(claims, name, [...new Set([readClaim(claims, [name]) ?? [], values].flat(2))])
}

/** The value replaces what there was, also a mark that the provider has withheld the claim. */
function withValue(claims: Claims, name: string, value: JsonValue | undefined): Claims {
  const { [name]: _, _claim_names, ...others } = claims
  const { [name]: _mark, ...marks } = isObject(_claim_names) ? (_claim_names as Claims) : {}
  return {
    ...others,
    ...(Object.keys(marks).length > 0 && { _claim_names: marks }),
    ...(value !== undefined && { [name]: value }),
  }
}
