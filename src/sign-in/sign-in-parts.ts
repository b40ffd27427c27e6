import type { ProviderConfig } from '../config/model/provider.ts'
import type { Keyring } from '../core/seal.ts'
import type { Site } from '../core/site.ts'
import type { StepUp } from '../core/step-up.ts'
import type { Challenges } from '../device/proof.ts'
import type { CanonicalTarget } from '../http/request-target.ts'
import type { KeptRequests } from '../kept-forms/kept-requests.ts'
import type { Instruments } from '../observe/instruments.ts'
import type { Pages } from '../pages/pages.ts'
import type { Provider } from '../provider/provider.ts'
import type { BoundCookie, PersonCookie, ProviderCookie, RefusedSignIns } from '../session/cookies/gateway-cookies.ts'
import type { ExpiredCookies, SessionCookie } from '../session/cookies/session-cookie.ts'
import type { ViewerParts } from '../session/cookies/viewer.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { SessionsOfAudience } from '../session/live/live-sessions.ts'
import type { KeysFor, PersonSessions } from '../session/people/person-sessions.ts'
import type { SessionStore } from '../session/store/store.ts'
import type { Returns } from './transaction.ts'

export interface SignInParts extends Instruments {
  readonly provider: Provider
  readonly store: Pick<SessionStore, 'takeOnce' | 'receivesNotices' | 'ping' | 'time' | 'readDocument'>
  readonly sessions: Pick<SessionsOfAudience, 'audience' | 'find' | 'read' | 'peek' | 'create' | 'replace'>
  readonly endings: Pick<SessionEndings, 'endOne'>
  readonly expiredCookies: Pick<ExpiredCookies, 'add' | 'has'>
  readonly cookie: SessionCookie
  readonly boundCookie: BoundCookie
  readonly challenges: Challenges
  readonly personCookie: Pick<PersonCookie, 'set' | 'tagOf'>
  readonly personSessions: Pick<PersonSessions, 'create' | 'list' | 'isForNewKey' | 'hasAny'>
  readonly keysFor: KeysFor
  readonly misuseLog: ViewerParts['misuseLog']
  readonly refusedSignIns: Pick<RefusedSignIns, 'prove'>
  readonly returns: Pick<Returns, 'noteBegun' | 'noteReturned'>
  readonly providerCookie: ProviderCookie
  /** The cookies of the other providers whose people use the same upstreams. */
  readonly others: readonly {
    readonly cookie: Pick<SessionCookie, 'read' | 'expireAll'>
    readonly personCookie: Pick<PersonCookie, 'expire'>
  }[]
  /** The providers between which the person has to choose first. Empty: the provider is known. */
  readonly choices: readonly ProviderConfig[]
  readonly kept: Pick<KeptRequests, 'isOn' | 'ofOthers'>
  readonly keyring: Keyring
  /** Whether no key is configured, so that no other process has the keys. */
  readonly hasGeneratedKeys: boolean
  readonly pages: Pages
  /** The path of the endpoints of the provider. */
  readonly prefix: string
  readonly reservedPrefix: string
  /** The hosts that share a session. `undefined`: each host has a session of its own. */
  readonly site: Site | undefined
  /** What the rules require of the authentication of people. */
  readonly stepUps: readonly StepUp[]
  /**
   * Whether a GET request for a target at a host (without port) is a logout link.
   * @throws {GatewayError} `ERR_REQUEST_TARGET` when the target is ambiguous
   */
  readonly isLogoutLink: (host: string, target: CanonicalTarget) => boolean
}
