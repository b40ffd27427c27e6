import type { Address } from '../addresses.ts'
import type {
  RedisSettings,
  SessionCookieSettings,
  SessionDeviceBindingSettings,
  SessionMaxPerPersonSettings,
  SessionSettings,
} from '../settings.ts'
import type { AsWritten } from './as-written.ts'

export interface SessionConfig extends DerivedOfSession, AsWritten<SessionSettings, DerivedOfSession> {}

interface DerivedOfSession {
  /** Keys of 32 bytes. The first one encrypts; all of them decrypt. */
  readonly keys: readonly Buffer[]
  /** The configuration has no key, so the gateway generated one when it read the file. */
  readonly isKeyGenerated: boolean
  readonly store: StoreConfig
  /** Absent: a person may have any number of sessions at one client of a provider. */
  readonly maxPerPerson: MaxPerPersonConfig | undefined
  readonly cookie: SessionCookieConfig
  readonly deviceBinding: DeviceBindingConfig
}

export interface MaxPerPersonConfig extends SessionMaxPerPersonSettings {
  readonly count: number
}

/** Sessions bound to a key of the browser's device (W3C Device Bound Session Credentials). */
export interface DeviceBindingConfig extends Omit<SessionDeviceBindingSettings, 'mode'> {
  /**
   * Whether browsers register keys. Upstreams and rules say where a session without one has no
   * access.
   */
  readonly isOn: boolean
  /**
   * Whether a session needs a key where no upstream or rule decides: at the endpoints of the
   * gateway that show something of a person.
   */
  readonly isRequired: boolean
}

export interface SessionCookieConfig extends SessionCookieSettings {
  readonly secure: boolean
}

export type StoreConfig =
  | { readonly kind: 'memory'; readonly maxSessions: number }
  /** `file`: an absolute path. */
  | { readonly kind: 'file'; readonly file: string }
  | RedisStoreConfig

/** Whether processes and replicas can share the sessions in a store. */
export function isShared(store: StoreConfig): store is RedisStoreConfig {
  return store.kind !== 'memory' && store.kind !== 'file'
}

export type RedisStoreConfig = RedisServerConfig | RedisSentinelConfig | RedisClusterConfig

interface AnyRedisConfig extends Pick<
  RedisSettings,
  'username' | 'password' | 'keyPrefix' | 'timeoutMs' | 'replicasAcknowledge'
> {
  /** Absent: no TLS. */
  readonly tls: RedisTlsConfig | undefined
}

/** All values in PEM. */
export interface RedisTlsConfig {
  /** The certificate authorities that are trusted instead of those of Node.js. */
  readonly ca: string | undefined
  /** The client certificate of the gateway. */
  readonly cert: string | undefined
  readonly key: string | undefined
}

/** A single server. */
export interface RedisServerConfig extends AnyRedisConfig {
  readonly kind: 'redis'
  /** The path is the number of the database. */
  readonly url: URL
}

/** The primary that the Sentinels name at the moment. */
export interface RedisSentinelConfig extends AnyRedisConfig {
  readonly kind: 'redis_sentinel'
  readonly sentinels: readonly Address[]
  readonly name: string
  readonly database: number
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
}

export interface RedisClusterConfig extends AnyRedisConfig {
  readonly kind: 'redis_cluster'
  /** The nodes that are asked for the layout of the Cluster. */
  readonly nodes: readonly Address[]
}
