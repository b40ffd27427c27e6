export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a value is an object, and not a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object that a text in JSON is; `undefined` for other texts. */
export function objectIn(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether a value that was parsed from JSON is nested deeper than `limit` levels. It works level by
 * level, because a recursive function such as `JSON.stringify` overflows the stack with deep input
 * (RFC 8259 §9).
 */
export function isDeeperThan(limit: number, value: unknown): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > limit) return true
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []))
  }
  return false
}

/** The deepest nesting that is accepted in documents and tokens of a provider. */
export const maxJsonDepth = 64

/**
 * The member of a table; `undefined` for other names. Every object has members such as
 * `constructor`, so a name from outside must not index a table.
 */
export function ownMember<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}
