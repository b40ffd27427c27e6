import { siteOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import type { IdentityAlgorithm, ServiceAccountsConfig, UpstreamConfig } from '../config/model/upstream.ts'
import type { CertificateClaims, Claims } from '../core/claims.ts'
import { systemClock, timeOfSeconds } from '../core/clock.ts'
import type { SessionKey } from '../core/names.ts'
import type { Authentication } from '../core/step-up.ts'
import type { Admission } from '../gate/admission.ts'
import { createAdmit } from '../gate/admit.ts'
import type { AdmitParts } from '../gate/context.ts'
import { type Identity, signedIn } from '../gate/identify.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { SignedIdentities } from '../identity/signed/signed-identity.ts'
import { createSigningKey } from '../identity/signed/signing-key.ts'
import type { RotatingKey } from '../keys/rotating-key.ts'
import type { Log } from '../observe/log.ts'
import { SessionCookie } from '../session/cookies/session-cookie.ts'
import { claimsOfSession, type StoredSession } from '../session/record/record.ts'
import type { KeyIdentity } from '../tokens/access-keys.ts'
import type { TokenIdentity } from '../tokens/access-tokens.ts'
import { type CertificateIdentity, recordOfCertificate } from '../tokens/client-certificates.ts'
import { type AccountIdentity, recordOfAccount } from '../tokens/service-accounts.ts'

/** A person for whom requests are explained, or nobody. */
export interface Who {
  readonly isSignedIn: boolean
  /** Who this is for an upstream, which accepts people of its providers only. */
  at(upstream: Pick<UpstreamConfig, 'providers'>): Identity
}

/**
 * A person with these claims, which may have the short names of the configuration. `iss` says at
 * which provider; without it, at the first one of each upstream. Without claims: nobody is signed
 * in.
 */
export function personWith(claims: Claims | undefined, config: Pick<GatewayConfig, 'providers' | 'session'>): Who {
  const realmOf = (provider: ProviderConfig) => ({
    prefix: provider.prefix,
    clockToleranceMs: provider.clockToleranceMs,
    cookie: new SessionCookie({ ...config.session.cookie, name: provider.cookieName }),
  })
  return {
    isSignedIn: claims !== undefined,
    at: ({ providers: names }) => {
      const accepted = config.providers.filter(({ name }) => names.includes(name))
      const named = config.providers.find(({ issuer }) => issuer === claims?.['iss'])
      const [first, ...others] = accepted
      const provider = named === undefined ? first : accepted.find((each) => each === named)
      if (claims === undefined || provider === undefined) {
        const realm = first === undefined || others.length > 0 ? undefined : realmOf(first)
        return { kind: 'anonymous', realm, staleCookie: false }
      }
      return signedIn(sessionOf(claims, provider), realmOf(provider))
    },
  }
}

/** What differs between the decisions that are tried. */
interface TrialParts extends Pick<
  AdmitParts,
  'routes' | 'identifyAccount' | 'identifyCertificate' | 'evaluate' | 'isStrict' | 'clock' | 'trace'
> {
  readonly session: (upstream: UpstreamConfig) => Identity
  /** Whose claims an access token or a key has. */
  readonly token: (upstream: UpstreamConfig) => Identity
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }

/** The decision that serves requests, for people who have not signed in. */
export function trialAdmit(
  config: GatewayConfig,
  { session, token, ...parts }: TrialParts,
): (facts: RequestFacts) => Admission {
  const admit = createAdmit(config, {
    ...parts,
    identify: (_cookie, upstream) => session(upstream),
    identifyToken: (_token, upstream) => tokenOf(token(upstream)),
    identifyKey: (_text, upstream) => keyOf(token(upstream)),
    exchange: () => standInToken,
    identities: trialIdentities(config),
    site: siteOf(config),
    log: silent,
  })
  return (facts) => {
    const admission = admit(facts)
    if (admission instanceof Promise) throw new TypeError('a decision about a known identity is synchronous')
    return admission
  }
}

/** The same claims as those of an access token. `explain` has no token that it could verify. */
function tokenOf(who: Identity): TokenIdentity {
  if (who.kind !== 'signed_in')
    return { kind: 'refused', why: 'the access token was not verified: explain knows the claims of --as only' }
  const { key, audience, record } = who.session
  return { kind: 'accepted', key, audience, record, clockToleranceMs: who.realm.clockToleranceMs, isOver: () => false }
}

/** The person of `--as` has the key of the request: `explain` reads no stored keys. */
function keyOf(who: Identity): KeyIdentity {
  if (who.kind !== 'signed_in')
    return { kind: 'refused', why: 'present, and not looked up: explain knows the claims of --as only' }
  const { record, session, realm } = who
  return { kind: 'accepted', record, session, clockToleranceMs: realm.clockToleranceMs }
}

/** Instead of a token that the provider would issue in exchange. `explain` never shows a token. */
const standInToken = { kind: 'token', token: 'token' } as const

/** The service account of this name. `explain` does not verify its secret. */
export function accountOf(
  name: string,
  accepts: ServiceAccountsConfig,
  { externalUrl }: Pick<GatewayConfig, 'externalUrl'>,
): AccountIdentity {
  if (!accepts.accounts.some((account) => account.name === name))
    return { kind: 'refused', why: 'there is no service account with this name' }
  return accountWith(name, accepts, { externalUrl })
}

/** A service account of this name, whether or not the file has a line for it. */
export function accountWith(
  name: string,
  accepts: Pick<ServiceAccountsConfig, 'claims'>,
  { externalUrl }: Pick<GatewayConfig, 'externalUrl'>,
): AccountIdentity & { readonly kind: 'accepted' } {
  return { kind: 'accepted', record: recordOfAccount(name, accepts, externalUrl.origin), clockToleranceMs: 0 }
}

/** A program with a certificate of these names, which the gateway accepts. */
export function certificateWith(
  names: CertificateClaims,
  { externalUrl }: Pick<GatewayConfig, 'externalUrl'>,
): CertificateIdentity {
  return { kind: 'accepted', record: recordOfCertificate(names, externalUrl.origin), clockToleranceMs: 0 }
}

function sessionOf(claims: Claims, provider: ProviderConfig): StoredSession {
  const { sub, sid } = claims
  const who = { iss: provider.issuer, sub: String(sub ?? 'somebody'), ...(typeof sid === 'string' && { sid }) }
  const record = {
    ...who,
    created_at: 0,
    // The session of a person is taken for a bound one.
    device: { alg: 'ES256' as const, jwk: {}, bound_at: 0 },
    absolute_expires_at: Infinity,
    // Stand-ins: `explain` never shows a token.
    tokens: { access_token: 'token', obtained_at: 0, id_token: 'token' },
    claims: claimsOfSession(claims, who, undefined, provider.claims),
    userinfo_read_at: 0,
    authentication: authenticationIn(claims),
  }
  return { key: 'explained' as SessionKey, audience: '', version: 1, record, bytes: 0 }
}

/** Without `auth_time`, the person has just authenticated. */
function authenticationIn({ acr, auth_time }: Claims): Authentication {
  return {
    ...(typeof acr === 'string' && { acr }),
    auth_time: typeof auth_time === 'number' ? timeOfSeconds(auth_time) : Infinity,
  }
}

const keys = new Map<IdentityAlgorithm, RotatingKey>()

/**
 * Signs identities as the gateway does, with keys that are not published: `explain` and `check`
 * have no access to the store.
 */
export function trialIdentities(config: Pick<GatewayConfig, 'externalUrl' | 'providers'>): SignedIdentities {
  const inUse = (alg: IdentityAlgorithm): RotatingKey => {
    const key = keys.get(alg) ?? createSigningKey(alg, 0)
    keys.set(alg, key)
    return key
  }
  return new SignedIdentities(config, { keys: { has: () => true, inUse }, clock: systemClock })
}
