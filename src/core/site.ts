/** The hosts of a domain that share one session. */
export interface Site {
  /** The origin where people sign in for all of them: `external_url` of the gateway. */
  readonly signInUrl: URL
  /** The origin of a host (in lower case, without port) that the configuration names. */
  originOf(host: string): string | undefined
}
