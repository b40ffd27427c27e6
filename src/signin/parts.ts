import type { Clock } from '../core/clock.ts'
import type { Keyring } from '../core/seal.ts'
import type { Audit, Cause } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { OpenidProvider } from '../provider/openid-provider.ts'
import type { SessionCookie } from '../session/cookie.ts'
import type { Sessions } from '../session/sessions.ts'

export interface SignInParts {
  readonly provider: OpenidProvider
  readonly sessions: Sessions
  readonly cookie: SessionCookie
  readonly keyring: Keyring
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
  readonly reservedPrefix: string
}

/** What the sign-in needs of a request to one of the gateway's own URLs. */
export interface OwnRequest {
  /** The path and query, as they were asked for. */
  readonly url: string
  readonly cookie: string | undefined
  /** The value of `Host` as the client sent it, with or without a port. */
  readonly host: string
  readonly referer: string | undefined
  /** The origin that browsers know this gateway by, for the host that was asked for; from the configuration, never from `Host`. */
  readonly externalUrl: URL
  readonly cause: Cause
}

/** Where the browser goes next, and what it is to remember. */
export interface Redirect {
  readonly location: string
  readonly setCookies: readonly string[]
}

/** The registered redirect URI: OpenID Connect Core §3.1.2.1 wants it the same, to the letter, every time. */
export function redirectUri(externalUrl: URL, reservedPrefix: string): string {
  return new URL(`${reservedPrefix}callback`, externalUrl).href
}

/** The only value of a query parameter; `undefined` when it is absent or, for nobody knows which one is meant, when it is there twice. */
export function onlyValue(parameters: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = parameters.getAll(name)
  return more.length === 0 ? value : undefined
}
