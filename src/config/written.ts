import type { Claims } from '../core/claims.ts'
import type { ExpectedOutcome, HeaderEncoding, Language, LogConfig, SigningAlgorithm } from './model.ts'

/**
 * The file as it is written, after the schema: defaults are filled in; what was wrong has been
 * reported and taken out.
 */
export interface WrittenConfig {
  readonly listen: string | number | { readonly address: string | number; readonly tls?: WrittenTls }
  readonly admin?: { readonly listen?: string | number; readonly page?: WrittenAdminPage }
  readonly external_url?: string
  readonly reserved_prefix: string
  readonly trusted_proxies: WrittenList<string>
  readonly workers: 'auto' | number
  readonly provider?: WrittenProvider
  readonly session: WrittenSession
  readonly include?: WrittenList<string>
  readonly upstreams?: Readonly<Record<string, WrittenUpstream>>
  readonly pages: WrittenPages
  readonly limits: {
    readonly header_size: string
    readonly header_count: number
    readonly headers_timeout: string
    readonly body_idle_timeout: string
    readonly body_rate: string
    readonly connections: number
    readonly per_client: {
      readonly connections: number
      readonly sign_ins: string
      readonly callbacks: string
      readonly callbacks_at_once: number
      readonly refused_logout_tokens: string
    }
  }
  readonly shutdown: { readonly drain_timeout: string }
  readonly log: LogConfig
  readonly tracing?: WrittenTracing
}

/** A list in which wrong entries leave a gap, so that the others keep their numbers. */
export type WrittenList<T> = readonly (T | undefined)[]

export interface WrittenAdminPage {
  readonly token?: WrittenSecret
  readonly hosts: WrittenList<string>
  readonly show_claim?: string
}

export interface WrittenTracing {
  readonly otlp?: string
  readonly sample: number
  readonly service_name: string
  readonly resource: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, WrittenSecret>>
  readonly ca_file?: string
}

export interface WrittenTls {
  readonly cert_file?: string
  readonly key_file?: string
}

export interface WrittenSecret {
  readonly env?: string
  readonly file?: string
}

export interface WrittenProvider {
  readonly issuer?: string
  readonly client_id?: string
  readonly client_secret?: WrittenSecret
  readonly token_endpoint_auth_method: 'client_secret_basic' | 'client_secret_post'
  readonly response_mode: 'query' | 'form_post'
  readonly frontchannel_logout: boolean
  readonly scopes?: WrittenList<string>
  readonly authorization_params: Readonly<Record<string, string>>
  readonly claims: Readonly<Record<string, string>>
  readonly id_token_claims: WrittenList<string>
  readonly id_token_signed_response_alg?: SigningAlgorithm
  readonly clock_tolerance: string
  readonly timeout: string
  readonly ca_file?: string
}

export interface WrittenSession {
  readonly keys?: WrittenList<WrittenSecret>
  readonly store: 'memory' | { readonly memory?: { readonly max_sessions: number }; readonly redis?: WrittenRedis }
  readonly idle_timeout: string
  readonly absolute_timeout: string
  readonly refresh_before: string
  readonly poll_userinfo?: string
  readonly store_outage_grace: string
  readonly cookie: { readonly name: string; readonly same_site: 'lax' | 'strict' }
}

export interface WrittenRedis {
  readonly url?: string
  readonly sentinels?: WrittenList<string>
  readonly name?: string
  readonly database?: number
  readonly sentinel_username?: string
  readonly sentinel_password?: WrittenSecret
  readonly cluster?: WrittenList<string>
  readonly username?: string
  readonly password?: WrittenSecret
  readonly ca_file?: string
  readonly cert_file?: string
  readonly key_file?: string
  readonly key_prefix: string
  readonly timeout: string
  readonly replicas_acknowledge: number
}

export interface WrittenPages {
  readonly name?: string
  readonly logo?: string
  readonly language: Language
  readonly colours: { readonly light: WrittenColours; readonly dark: WrittenColours }
  readonly support?: WrittenSupport
  readonly templates?: string
}

export interface WrittenColours {
  readonly background: string
  readonly surface: string
  readonly text: string
  readonly accent: string
}

export interface WrittenSupport {
  readonly text?: string
  readonly url?: string
  readonly mail?: string
}

export interface WrittenUpstream {
  readonly url?: string
  readonly hosts?: WrittenList<string>
  readonly path: string
  readonly external_url?: string
  readonly host_header: 'client' | 'upstream'
  readonly headers: Readonly<Record<string, string | WrittenHeader>>
  readonly rules: WrittenList<WrittenRule>
  readonly cache: 'private' | 'no_store' | 'upstream'
  readonly trusted_origins: 'any' | WrittenList<string>
  readonly logout: { readonly paths: WrittenList<string | WrittenLogoutLink>; readonly cookies: WrittenList<string> }
  readonly upgrade: WrittenList<string>
  readonly connect_timeout: string
  readonly response_timeout: string
  readonly idle_timeout: string
  readonly keep_alive: string
  readonly max_connections: number
  readonly max_streams: number
  readonly max_streams_per_client: number
  readonly ca_file?: string
  readonly tests: WrittenList<WrittenTest>
}

export interface WrittenLogoutLink {
  readonly path?: string
  readonly query?: Readonly<Record<string, string>>
}

export interface WrittenHeader {
  readonly claim?: string
  readonly template?: string
  readonly join: string
  readonly encode: HeaderEncoding
  readonly max_bytes: string
  readonly required: boolean
}

export interface WrittenRule {
  readonly path?: string
  readonly methods?: WrittenList<string>
  readonly access: 'public' | 'optional' | 'signed_in'
  readonly unauthenticated: 'auto' | 'redirect' | '401' | 401
  readonly require?: WrittenRequirement | WrittenList<WrittenRequirement>
}

export interface WrittenRequirement {
  readonly claim?: string
  readonly any_of?: WrittenList<string>
  readonly all_of?: WrittenList<string>
  readonly none_of?: WrittenList<string>
}

export interface WrittenTest {
  readonly as?: Claims
  readonly get?: string
  readonly post?: string
  readonly put?: string
  readonly patch?: string
  readonly delete?: string
  readonly head?: string
  readonly options?: string
  readonly expect?: ExpectedOutcome
  readonly headers: Readonly<Record<string, string | null>>
}
