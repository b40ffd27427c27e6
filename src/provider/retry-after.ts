/** The longest time that a server may ask to wait, in ms. */
const longestMs = 10 * 60 * 1000

/**
 * How long a server asks to wait (RFC 9110 §10.2.3), in ms, ten minutes at most; `undefined` when
 * the field is absent or is a date.
 */
export function retryAfterMs(field: string | null): number | undefined {
  return field !== null && /^\d{1,9}$/.test(field) ? Math.min(Number(field) * 1000, longestMs) : undefined
}
