import type { ClaimPath } from '../../core/claims.ts'
import type { Address } from '../addresses.ts'
import type { ExtAuthzSettings, GatewaySettings, LimitsSettings, ListenSettings, TracingSettings } from '../settings.ts'
import type { AsWritten } from './as-written.ts'
import type { PagesConfig } from './pages.ts'
import type { ProviderConfig } from './provider.ts'
import type { SessionConfig } from './session.ts'
import type { UpstreamConfig } from './upstream.ts'

/**
 * A configuration that has been checked. What the gateway uses as it is written has the type of its
 * settings, and the schema describes it. A field has the name of its setting in camelCase, with
 * exceptions:
 *
 * - `providers` has the one of `provider` too.
 * - `ca`, `cert` and `key` hold the content of `ca_file`, `cert_file` and `key_file`.
 * - `store.kind` says which of `memory` and `redis` (`url`, `sentinels`, `cluster`) is configured;
 *   `nodes` are the addresses in `cluster`.
 * - `basic` of a header is a source with `user` and `password`.
 * - `time` of a requirement is a window made of `days`, `from`, `to` and `zone`.
 * - `method` and `path` of a test replace `get`, `post` and so on. So do `method` and `target` of
 *   `logout.call`. `support.url` replaces `mail`.
 */
export interface GatewayConfig
  extends
    DerivedOfGateway,
    AsWritten<GatewaySettings, DerivedOfGateway, 'version' | 'provider' | 'egressProxy' | 'include'> {}

interface DerivedOfGateway {
  /** The path of the file, as on the command line. */
  readonly file: string
  readonly listen: ListenConfig
  /** The administration listener. Absent: there is none. */
  readonly admin: AdminConfig | undefined
  /** Where Envoy asks about requests over gRPC. Absent: nowhere. */
  readonly extAuthz: ExtAuthzConfig | undefined
  /** Where browsers reach the gateway: an origin, without path. */
  readonly externalUrl: URL
  /** The path of all endpoints of the gateway. Starts and ends in `/`. */
  readonly reservedPrefix: string
  /** The number of processes that share the port; 1 with the memory store. */
  readonly workers: number
  /** At least one. The one of the setting `provider` is alone. */
  readonly providers: readonly [ProviderConfig, ...ProviderConfig[]]
  readonly session: SessionConfig
  readonly upstreams: readonly UpstreamConfig[]
  readonly pages: PagesConfig
  readonly limits: LimitsConfig
  /** Absent: the gateway records no traces. */
  readonly tracing: TracingConfig | undefined
}

/** The listener for health, readiness, metrics and administration. */
export interface AdminConfig extends Address {
  /** Absent: there is no page for administration. */
  readonly page: AdminPageConfig | undefined
}

export interface AdminPageConfig {
  /** The password of the page. Absent: the page has none, and the listener is on loopback. */
  readonly token: string | undefined
  /** The host names, besides IP addresses and `localhost`, at which browsers may open the page. */
  readonly hosts: readonly string[]
  /** A claim that the page shows besides `sub`. Absent: none. */
  readonly showClaim: ClaimPath | undefined
}

/** The listener for the checks of Envoy over gRPC. */
export type ExtAuthzConfig = Address & ExtAuthzSettings

export interface TracingConfig extends AsWritten<TracingSettings, { otlp: URL }> {
  /** The URL that traces are posted to. */
  readonly otlp: URL
}

/** The paths of a certificate and its key (PEM). */
export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

export interface ListenTlsConfig extends CertificateFiles {
  /** Further ones, for other host names. */
  readonly certificates: readonly CertificateFiles[]
  /** The authorities of client certificates. Absent: clients are not asked for a certificate. */
  readonly clientCaFile: string | undefined
}

export interface ListenConfig extends DerivedOfListen, AsWritten<ListenSettings, DerivedOfListen, 'address'> {}

interface DerivedOfListen extends Address {
  readonly tls: ListenTlsConfig | undefined
}

export interface LimitsConfig extends LimitsSettings {
  /** Whether the file sets `connections`. */
  readonly areConnectionsSet: boolean
}
