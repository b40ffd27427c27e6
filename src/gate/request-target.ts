/** The one reading of a request target: used for matching, for the decision and for forwarding alike. */
export interface CanonicalTarget {
  /** The path as it is matched and forwarded. */
  readonly path: string
  /** Its segments, for patterns: `/a/b` → `['a', 'b']`, `/` → `['']`. */
  readonly segments: readonly string[]
  /** `?…` byte for byte, or the empty string. */
  readonly query: string
}
