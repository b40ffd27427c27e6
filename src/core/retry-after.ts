/** The longest time that a server may ask to wait, in ms. */
const longestMs = 10 * 60 * 1000

/**
 * How long a server asks to wait (RFC 9110 §10.2.3), in ms, ten minutes at most; `undefined` when
 * the field is absent or is a date.
 */
export function retryAfterMs(field: unknown): number | undefined {
  return typeof field === 'string' && /^\d{1,9}$/.test(field) ? Math.min(Number(field) * 1000, longestMs) : undefined
}

/** Asks a client to wait, in whole seconds: a client that came too early would be refused again. */
export function retryAfter(waitMs: number): { readonly 'Retry-After': string } {
  return { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) }
}
