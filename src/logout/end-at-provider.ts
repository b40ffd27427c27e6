import { reason } from '../core/errors.ts'
import type { Audit, Cause } from '../observe/audit.ts'
import type { Provider } from '../provider/provider.ts'
import type { PersonSessions } from '../session/people/person-sessions.ts'
import type { SessionRecord } from '../session/record/record.ts'

export interface EndAtProviderParts {
  readonly provider: Pick<Provider, 'endSession' | 'revoke'>
  readonly personSessions: Pick<PersonSessions, 'hasKeys'>
  readonly audit: Audit
}

/**
 * How many sessions end at the provider at a time. Each takes two of the connections that sign-ins
 * need too (see `connectionsFor.others`).
 */
const batchSize = 10

/**
 * `unknown`: the response does not show whether the session has ended. `not_asked`: no request was
 * sent, because the provider was unreachable for the sessions before.
 */
export type ProviderOutcome = 'ended' | 'unknown' | 'unsupported' | 'unreachable' | 'not_asked'

/**
 * Ends the session at the provider without a browser, by `POST` with `id_token_hint`. An error is
 * only recorded, because the local session has already ended.
 */
export function endAtProvider(
  record: SessionRecord,
  parts: EndAtProviderParts,
  cause?: Cause,
): Promise<'ended' | 'unknown' | 'unsupported' | 'unreachable'> {
  const work = parts.provider.endSession(record.tokens.id_token)
  return recorded('provider.end_session', { record, parts, cause, work })
}

/**
 * Revokes the refresh token, if the provider has a revocation endpoint (RFC 7009), unless keys of
 * the person could end with it: a provider may revoke all tokens of the grant, which those of
 * several sign-ins may share, or of the person.
 */
export async function revokeTokens(record: SessionRecord, parts: EndAtProviderParts, cause?: Cause): Promise<void> {
  const { refresh_token } = record.tokens
  if (refresh_token === undefined || (await parts.personSessions.hasKeys(record.sub).catch(() => false))) return
  await recorded('provider.revocation', { record, parts, cause, work: parts.provider.revoke(refresh_token) })
}

/**
 * Ends sessions at the provider, and revokes their refresh tokens: in batches, because sign-ins of
 * other people must not wait for a connection. Stops after a batch for which the provider was
 * unreachable. Several sessions here may belong to one at the provider, which ends only once.
 * @param keptSid this session at the provider does not end
 * @returns how many sessions at the provider have each outcome
 */
export async function endAllAtProvider(
  records: readonly SessionRecord[],
  parts: EndAtProviderParts,
  { cause, keptSid }: { readonly cause?: Cause | undefined; readonly keptSid?: string | undefined },
): Promise<ReadonlyMap<ProviderOutcome, number>> {
  const counts = new Map<ProviderOutcome, number>()
  const count = (outcome: ProviderOutcome, by = 1) => counts.set(outcome, (counts.get(outcome) ?? 0) + by)
  const groups = bySid(records)
  for (let at = 0; at < groups.length; at += batchSize) {
    const some = groups.slice(at, at + batchSize)
    const outcomes = await Promise.all(
      some.map(async (group) => {
        const [first] = group
        // The session at the provider that a key came from may be that of a browser.
        const isKept = first.key !== undefined || (first.sid !== undefined && first.sid === keptSid)
        const [outcome] = await Promise.all([
          isKept ? undefined : endAtProvider(first, parts, cause),
          ...group.map((record) => revokeTokens(record, parts, cause)),
        ])
        return outcome
      }),
    )
    for (const outcome of outcomes) if (outcome !== undefined) count(outcome)
    if (!outcomes.every((outcome) => outcome === 'unreachable')) continue
    const left = groups.length - at - some.length
    if (left > 0) count('not_asked', left)
    break
  }
  return counts
}

/** The sessions here of each session at the provider. */
function bySid(records: readonly SessionRecord[]): readonly (readonly [SessionRecord, ...SessionRecord[]])[] {
  const groups = new Map<unknown, [SessionRecord, ...SessionRecord[]]>()
  for (const record of records) {
    const group = groups.get(record.sid ?? record)
    if (group === undefined) groups.set(record.sid ?? record, [record])
    else group.push(record)
  }
  return [...groups.values()]
}

async function recorded<T extends string>(
  event: 'provider.end_session' | 'provider.revocation',
  about: {
    readonly record: SessionRecord
    readonly parts: EndAtProviderParts
    readonly cause: Cause | undefined
    readonly work: Promise<T>
  },
): Promise<T | 'unreachable'> {
  const { record, parts, cause, work } = about
  const { iss, sub, sid } = record
  try {
    const outcome = await work
    parts.audit.record(event, { iss, sub, sid, outcome }, cause)
    return outcome
  } catch (error) {
    parts.audit.record(event, { iss, sub, sid, outcome: 'unreachable', reason: reason(error) }, cause)
    return 'unreachable'
  }
}
