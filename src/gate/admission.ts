import type { OwnResponseConfig } from '../config/model/respond.ts'
import type { RuleConfig } from '../config/model/rule.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { BearerChallenge, Caller } from '../core/credentials.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import type { SessionKey } from '../core/names.ts'
import type { PathPattern } from '../core/patterns.ts'
import type { StepUp } from '../core/step-up.ts'
import type { Misuse } from '../device/misuse.ts'
import type { KeptCookie } from '../http/cookie-jar.ts'
import type { DroppedHeader } from '../identity/claim-headers.ts'
import type { ApplicationSession, Principal } from '../session/record/record.ts'
import type { Unmet } from './rules/requirement.ts'

/**
 * How caches may store the response. `anybody`: as the upstream says, because all clients get the
 * same response. `varies`: a signed-in person gets a different response. The other values are for
 * personal responses: see `cache` of an upstream.
 */
export type Caching = 'anybody' | 'varies' | UpstreamConfig['cache']

/** Header fields for pages of other origins, by name. */
export type CorsFields = Readonly<Record<string, string>>

/**
 * The decision about a request. It is a value: nothing has been sent yet.
 *
 * `setCookies` are `Set-Cookie` values that expire the cookies of a session that has ended. Only
 * immediate responses have them. Until an upstream responds, the browser may have signed in again,
 * and its new cookie has the same name. So `expire` of a forwarded request is called when the
 * response begins.
 *
 * `sessionEnded`: the request has the cookie of a session that has ended, and the browser removes
 * what it keeps of it, also when the cookie needs no `Set-Cookie` any more.
 */
export type Admission =
  | Pass
  | Respond
  | Maintenance
  /**
   * The person has to sign in, or has to sign in again as {@link SignInFirst} says: the browser is
   * redirected to `location`. `leavesPage`: the
   * browser shows a page of the ended session, and would show it again on Back. A page of the
   * gateway, which comes first, makes the browser remove it.
   */
  | ({
      readonly kind: 'sign_in'
      readonly leavesPage?: boolean
      /** The request is a form. Its content is kept during the sign-in, or a page says why not. */
      readonly form?: FormAdmission
    } & SignInFirst)
  /** The same for a request that is not redirected. `location` is for the front end. */
  | ({ readonly kind: 'unauthorized' } & SignInFirst)
  /** The signed-in person does not satisfy the rule; `why` is for the log. */
  | ({ readonly kind: 'forbidden'; readonly setCookies: readonly string[] } & (Unmet | LacksScope) & Denial)
  /** A page of another origin made the request, in the name of the person; `why` is for the log. */
  | ({ readonly kind: 'cross_site'; readonly why: string } & Denial)
  /**
   * A link on another site opened the page, so the browser did not send a `Strict` cookie. A page
   * of the gateway makes the browser load `location` again, now with its cookie.
   */
  | { readonly kind: 'reload'; readonly location: string }
  /** The gateway responds for the upstream, because the request is a preflight. */
  | { readonly kind: 'preflight'; readonly fields: CorsFields }
  | CallerRefused
  /** No upstream serves the request; `why` is for the log. */
  | { readonly kind: 'no_route'; readonly why: string }
  /**
   * A logout link of the application. `location` is the sign-out of the gateway. A browser is
   * redirected to it; a request of a script is handled like a `POST` to it. With `first`, the
   * application receives the request before the sign-out.
   */
  | { readonly kind: 'sign_out'; readonly location: string; readonly first?: Pass }
  /**
   * The store, the provider or the policy decision point is unavailable, so the request is rejected
   * (fail closed). `pass`: the rules admit it.
   */
  | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string; readonly pass?: Pass }

/** The credentials of the request are not accepted, or do not suffice; `why` is for the log. */
export interface CallerRefused extends CallerChallenges {
  readonly kind: 'caller_refused'
  readonly caller: Caller
  readonly code:
    | 'ERR_TOKEN_INVALID'
    | 'ERR_STEP_UP'
    | 'ERR_ACCOUNT_INVALID'
    | 'ERR_CERTIFICATE_INVALID'
    | 'ERR_KEY_INVALID'
    | 'ERR_TOO_MANY_REQUESTS'
  readonly why: string
  readonly upstream: UpstreamConfig
  /** The service account, if there is one with this name. */
  readonly account?: string | undefined
  /** The subject of the client certificate, if it can be read. */
  readonly subject?: string | undefined
  /** When the client may try again, in ms. */
  readonly waitMs?: number | undefined
}

/** How a request can get access with credentials of its own. */
export interface CallerChallenges {
  /** With an access token. Absent: the rule accepts none. */
  readonly challenge?: BearerChallenge | undefined
  /** With the secret of a service account or a key, unless it is the request of a browser. */
  readonly offersBasic?: boolean | undefined
}

/** The access token lacks a scope. */
export interface LacksScope {
  readonly code: 'ERR_TOKEN_SCOPE'
  readonly why: string
  readonly challenge: BearerChallenge
}

/** A sign-in is needed before the request can be forwarded. */
export interface SignInFirst extends CallerChallenges {
  readonly location: string
  /** The path of the endpoints where the person signs in. */
  readonly prefix: string
  readonly setCookies: readonly string[]
  readonly sessionEnded: boolean
  /** How the person has to authenticate, if the rule says so. */
  readonly stepUp?: StepUp | undefined
  /** Why the authentication of the signed-in person does not meet `stepUp`, for the log. */
  readonly insufficient?: string | undefined
  /** The request has the cookie of a bound session, but does not come from its device. */
  readonly misuse?: Misuse | undefined
}

/** A form that met no session, or one whose authentication is not sufficient. */
export interface FormAdmission {
  readonly upstream: UpstreamConfig
  /** As for a {@link Pass}, because the content may arrive slowly. */
  readonly expire: (() => readonly string[]) | undefined
  readonly stepUp: StepUp | undefined
}

/** The upstream receives the request. */
export interface Pass {
  readonly kind: 'pass'
  readonly upstream: UpstreamConfig
  /** Header fields for the upstream: names and values, alternating. */
  readonly identity: readonly string[]
  /** The headers of the person that are left out. Absent without a session. */
  readonly dropped?: readonly DroppedHeader[]
  /** `undefined` on public paths and without a session. That of an access key is its record. */
  readonly session: SessionKey | undefined
  /** When that session ends at the latest, in ms since the epoch. Absent without a session. */
  readonly endsAt?: number | undefined
  /**
   * The request has credentials of its own, and no cookie counts. The upstream does not get them.
   */
  readonly caller?: Caller | undefined
  /** Whether the access token of the caller has ended. Absent: the caller has none. */
  readonly isOver?: (() => boolean) | undefined
  /** The cookies of the upstream that the session keeps. */
  readonly cookies?: readonly KeptCookie[] | undefined
  /** The sign-in of the gateway at the application, for the person. Absent: there was none. */
  readonly application?: ApplicationSession | undefined
  /** The names of cookies of the client that the upstream does not get. Absent: none. */
  readonly withheldCookies?: readonly string[] | undefined
  readonly caching: Caching
  /** A rule that is only observed would have denied the request. Absent: no rule would have. */
  readonly observed?: ObservedDenial | undefined
  /**
   * Returns `Set-Cookie` values that expire cookies of a session that has ended; none when the
   * browser may have a new session by then. They precede those of the upstream.
   */
  readonly expire?: (() => readonly string[]) | undefined
  /** As for {@link SignInFirst}, where nobody needs to sign in. */
  readonly misuse?: Misuse | undefined
}

/** The rule admits the request, and the gateway itself responds. */
export interface Respond {
  readonly kind: 'respond'
  readonly respond: OwnResponseConfig
  /** The path of the rule. */
  readonly path: PathPattern
  readonly pass: Pass
}

/** The rule is about maintenance, and the request is not let through. */
export interface Maintenance {
  readonly kind: 'maintenance'
  readonly upstream: UpstreamConfig
  readonly retryAfterMs: number
}

/** The denial that a rule with `mode: observe` does not enforce. */
export type ObservedDenial = Unmet & Denial

/** Whose request was rejected, and by which rule. */
export interface Denial {
  readonly upstream: UpstreamConfig
  readonly rule: RuleConfig
  readonly principal: Principal
  readonly caller?: Caller | undefined
}

/**
 * Whether the session or the access token has ended since a request with it was admitted: it may
 * have waited for a decision, a token or its content.
 */
export function hasEnded(
  { session, endsAt, isOver }: Pick<Pass, 'session' | 'endsAt' | 'isOver'>,
  sessions: { readonly hasEnded: (session: SessionKey) => boolean },
  now: number,
): boolean {
  if (isOver?.() === true || (endsAt !== undefined && now >= endsAt)) return true
  return session !== undefined && sessions.hasEnded(session)
}
