import type { RuleConfig, UpstreamConfig } from '../config/model.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import type { SessionKey } from '../core/names.ts'
import type { Unmet } from '../rules/requirement.ts'
import type { StoredSession } from '../session/record.ts'

/**
 * What caches may make of an answer: `anybody`, what the upstream says, for everybody gets the
 * same; `varies`, who is signed in gets another one. All others are about a person: see `cache` of
 * an upstream.
 */
export type Caching = 'anybody' | 'varies' | UpstreamConfig['cache']

/**
 * What is to become of a request. A value: nothing has been sent yet. `setCookies` are `Set-Cookie`
 * values that expire what is left of a session that has ended. Only what is answered at once has
 * them: by the time an upstream answers, the browser may have signed in again, and its new cookie
 * has the same name. So `expire` of a request that passes is asked when the response begins.
 */
export type Admission =
  | {
      readonly kind: 'pass'
      readonly upstream: UpstreamConfig
      /** Header lines for the upstream, name and value in turn. */
      readonly identity: readonly string[]
      /** Absent on public paths without a session. */
      readonly session: SessionKey | undefined
      readonly caching: Caching
      /**
       * `Set-Cookie` values for a session that has ended; none when the browser may have another
       * session by then.
       */
      readonly expire?: () => readonly string[]
    }
  /**
   * A page load that has to sign in first: the browser is sent to `location`. `leavesPage`: a page
   * of the session that has ended is open in the browser, which would show it again on Back. A page
   * of ours in between lets the browser remove it.
   */
  | {
      readonly kind: 'sign_in'
      readonly location: string
      readonly setCookies: readonly string[]
      readonly leavesPage?: boolean
    }
  /**
   * Not a page load, and nobody is signed in. `location` is where a front end may send the person.
   */
  | { readonly kind: 'unauthorized'; readonly location: string; readonly setCookies: readonly string[] }
  /** Signed in, but the rule asks for more; `why` is for the log. */
  | ({ readonly kind: 'forbidden'; readonly setCookies: readonly string[] } & Unmet & Denial)
  /**
   * Made by a page of another origin, and it would be done in the person's name; `why` is for the
   * log.
   */
  | ({ readonly kind: 'cross_site'; readonly why: string } & Denial)
  /**
   * A page load that another site began: the browser has kept a `Strict` cookie back, and is to ask
   * again of its own accord for the same `location`, with the cookie if there is one.
   */
  | { readonly kind: 'reload'; readonly location: string }
  /** No upstream serves it; `why` is for the log. */
  | { readonly kind: 'no_route'; readonly why: string }
  /**
   * The application's own logout link. `location` is the gateway's sign-out: a browser is sent
   * there, and for a script the request is carried out as `POST` to it.
   */
  | { readonly kind: 'sign_out'; readonly location: string }
  /** It cannot be decided right now; fail closed, and say when to try again. */
  | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string }

/** Who was refused what, and by which rule. */
export interface Denial {
  readonly upstream: UpstreamConfig
  readonly rule: RuleConfig
  readonly session: StoredSession
}
