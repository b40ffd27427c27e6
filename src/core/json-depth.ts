/**
 * Whether a value that was parsed from JSON is nested deeper than `limit` levels. Works level by
 * level: a recursive function, such as `JSON.stringify`, overflows the stack on what somebody has
 * nested deeply enough (RFC 8259 §9).
 */
export function isDeeperThan(limit: number, value: unknown): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > limit) return true
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []))
  }
  return false
}

/** No document or token of a provider is nested deeper than this. */
export const deepestJson = 64
