import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import type {
  AccessTokensConfig,
  ServiceAccountsConfig,
  TokenExchangeConfig,
  UpstreamConfig,
} from '../config/model/upstream.ts'
import type { Credentials } from '../core/basic-credentials.ts'
import type { Clock } from '../core/clock.ts'
import type { NamePattern } from '../core/name-pattern.ts'
import type { Site } from '../core/site.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { SignedIdentities } from '../identity/signed/signed-identity.ts'
import type { Log } from '../observe/log.ts'
import type { TokenIdentity } from '../tokens/access-tokens.ts'
import type { Exchanged, ExchangeSubject } from '../tokens/exchanged-tokens.ts'
import type { AccountIdentity } from '../tokens/service-accounts.ts'
import type { HeadersForUpstream } from './headers-for-upstream.ts'
import type { Identity } from './identify.ts'
import type { RouteTable } from './rules/route-table.ts'

export interface AdmitConfig extends Pick<GatewayConfig, 'upstreams' | 'reservedPrefix'> {
  readonly session: Pick<GatewayConfig['session'], 'deviceBinding'>
  readonly providers: readonly Pick<ProviderConfig, 'name' | 'prefix'>[]
}

export interface AdmitParts {
  readonly routes: RouteTable
  /** Identifies the sender of a `Cookie` header, for an upstream. */
  readonly identify: (cookieHeader: string | undefined, upstream: UpstreamConfig) => Identity | Promise<Identity>
  /**
   * Who sends a request with an access token, for an upstream. `client` is the address. Absent: no
   * token is accepted.
   */
  readonly identifyToken?: (
    token: string,
    upstream: UpstreamConfig,
    accepts: AccessTokensConfig,
    client: string,
  ) => TokenIdentity | Promise<TokenIdentity>
  /** The hosts that share a session. Absent: each host has a session of its own. */
  readonly site?: Site | undefined
  /** See `SessionCookie.expireFormer`. Absent: browsers have no former cookies. */
  readonly expireFormer?: (facts: Pick<RequestFacts, 'cookie' | 'host'>) => readonly string[]
  /**
   * Who sends a request with Basic credentials, for an upstream. `client` is the address. Absent:
   * there are no service accounts.
   */
  readonly identifyAccount?: (
    credentials: Credentials,
    upstream: UpstreamConfig,
    accepts: ServiceAccountsConfig,
    client: string,
  ) => AccountIdentity | Promise<AccountIdentity>
  /** The token of a subject for an upstream, in exchange for its access token. */
  readonly exchange?: (
    subject: ExchangeSubject,
    upstream: UpstreamConfig,
    wanted: TokenExchangeConfig,
  ) => Exchanged | Promise<Exchanged>
  /** Whether browsers send session cookies only within the site (`SameSite=Strict`). */
  readonly isStrict: boolean
  readonly identities: Pick<SignedIdentities, 'isReady' | 'of'>
  readonly clock: Clock
  readonly log: Log
}

/** What all parts of the decision share. */
export interface GateContext extends AdmitParts {
  readonly config: AdmitConfig
  readonly headers: HeadersForUpstream
  /** The names of cookies that belong to one person. */
  readonly personal: readonly NamePattern[]
}
