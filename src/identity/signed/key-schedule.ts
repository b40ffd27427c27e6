import type { IdentityAlgorithm } from '../../config/model/upstream.ts'

/** The part of a key that its schedule depends on. */
export interface ScheduledKey {
  readonly kid: string
  readonly alg: IdentityAlgorithm
  /** In ms since the epoch. */
  readonly signsFrom: number
}

/**
 * How long a key is published before it signs, in ms. Within this time, all processes read it from
 * the store, and the copies of the key set at verifiers and caches expire.
 */
export const publishedAheadMs = 3_600_000

/**
 * How long a key stays published after its successor signs, in ms: longer than the longest
 * `lifetime` (1h), because the clocks of processes and verifiers differ.
 */
export const retainedMs = 2 * 3_600_000

/** The key that signs at the time `now`. `undefined` when there is no key for this algorithm. */
export function keyInUse<K extends ScheduledKey>(
  keys: readonly K[],
  alg: IdentityAlgorithm,
  now: number,
): K | undefined {
  const ordered = inOrder(keys, alg)
  // If the clock was set back, possibly no key has begun to sign.
  return ordered.findLast(({ signsFrom }) => signsFrom <= now) ?? ordered[0]
}

/**
 * When a new key has to begin to sign, in ms since the epoch; `undefined` when no new key is due.
 * The first key signs at once, and every other one after it was published.
 */
export function dueFrom(
  keys: readonly ScheduledKey[],
  alg: IdentityAlgorithm,
  { rotateEveryMs, now }: { readonly rotateEveryMs: number; readonly now: number },
): number | undefined {
  const newest = inOrder(keys, alg).at(-1)
  if (newest === undefined) return now
  const publishFrom = newest.signsFrom + rotateEveryMs - publishedAheadMs
  return now < publishFrom ? undefined : now + publishedAheadMs
}

/**
 * Merges the keys of several sources, without duplicates. Leaves out retired keys: when the
 * successor has signed for long enough, all tokens of a key have expired. So a source may be an
 * older copy. Also leaves out keys for the far future, which come from a clock that was wrong.
 */
export function mergedKeys<K extends ScheduledKey>(sources: readonly (readonly K[])[], now: number): readonly K[] {
  const keys = [...new Map(sources.flat().map((key) => [key.kid, key])).values()].filter(
    ({ signsFrom }) => signsFrom <= now + 2 * publishedAheadMs,
  )
  return keys
    .filter(
      ({ alg, signsFrom }) =>
        !keys.some((other) => other.alg === alg && other.signsFrom > signsFrom && other.signsFrom + retainedMs <= now),
    )
    .toSorted(byStart)
}

function inOrder<K extends ScheduledKey>(keys: readonly K[], alg: IdentityAlgorithm): readonly K[] {
  return keys.filter((key) => key.alg === alg).toSorted(byStart)
}

/** Processes that know the same keys agree on their order. */
function byStart(one: ScheduledKey, other: ScheduledKey): number {
  return one.signsFrom - other.signsFrom || (one.kid < other.kid ? -1 : 1)
}
