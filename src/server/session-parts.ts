import type { GatewayConfig } from '../config/model/gateway.ts'
import { Keyring } from '../core/seal.ts'
import type { RouteTable } from '../gate/rules/route-table.ts'
import { algorithmsOf, SigningKeys } from '../identity/signed/signing-keys.ts'
import type { Upstreams } from '../proxy/upstream.ts'
import { SessionCookie } from '../session/cookies/cookie.ts'
import { ExpiredCookies } from '../session/cookies/expired-cookies.ts'
import { ProviderCookie } from '../session/cookies/provider-cookie.ts'
import { createSessions } from '../session/live/create-sessions.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { Sessions } from '../session/live/sessions.ts'
import { audienceOf } from '../session/record/record.ts'
import { AllLogoutCalls, createJobs } from './logout-calls.ts'
import { Realms } from './realms.ts'
import type { SharedParts } from './shared-parts.ts'

/** Who is signed in by one configuration, at which providers, and what happens at the end. */
export interface SessionParts {
  readonly keyring: Keyring
  readonly cookie: SessionCookie
  readonly providerCookie: ProviderCookie
  /** Cookies of sessions that have ended, which browsers have no more. */
  readonly expiredCookies: ExpiredCookies
  readonly sessions: Sessions
  readonly endings: SessionEndings
  readonly realms: Realms
  readonly signingKeys: SigningKeys
  readonly logoutCalls: AllLogoutCalls
}

export function createSessionParts(
  config: GatewayConfig,
  parts: SharedParts & { readonly upstreams: Upstreams; readonly routes: RouteTable },
): SessionParts {
  const { store, pending, caches, live, log, clock, audit, metrics, upstreams, routes } = parts
  const keyring = new Keyring(config.session.keys)
  const cookie = new SessionCookie(config.session.cookie)
  const providerCookie = new ProviderCookie(cookie)
  const jobs = createJobs(config, keyring)
  const { sessions, endings } = createSessions({
    ...{ store, pending, caches, keyring, clock, log, audit, jobs },
    audiences: config.providers.map(audienceOf),
    config: config.session,
  })
  const expiredCookies = new ExpiredCookies()
  endings.onEnded((keys, where) => {
    live.closeAll(keys)
    // The browser may have signed in again at that process: its cookie is of the new session.
    if (where === 'elsewhere') for (const key of keys) expiredCookies.add(key)
  })
  const realms = new Realms(config, {
    ...{ store, sessions, endings, keyring, providerCookie, routes, clock, log, audit, metrics },
  })
  const signingKeys = new SigningKeys({
    ...{ store, keyring, clock, log },
    audience: audienceOf(config.providers[0]),
    config: config.signingKeys,
    algorithms: algorithmsOf(config.upstreams),
  })
  const logoutCalls = new AllLogoutCalls(config, { store, jobs, endings, upstreams, clock, log, audit })
  return { keyring, cookie, providerCookie, expiredCookies, sessions, endings, realms, signingKeys, logoutCalls }
}
