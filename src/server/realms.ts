import { setTimeout as wait } from 'node:timers/promises'
import { upstreamsOfHost } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { RouteTable } from '../gate/rules/route-table.ts'
import { canonicalTarget } from '../http/request-target.ts'
import type { ProviderCookie } from '../session/cookies/gateway-cookies.ts'
import { sessionOf } from '../session/cookies/viewer.ts'
import { sessionKey } from '../session/record/record.ts'
import { Realm, type RealmParts } from './realm.ts'

/** The realm that a request means, or the providers between which the person has to choose. */
export interface Meant {
  readonly realm: Realm
  readonly choices: readonly ProviderConfig[]
  /** All realms of the page, or else of the host. */
  readonly candidates: readonly Realm[]
}

/** A page of a host (without port): its path and query. */
export interface PageOfHost {
  readonly host: string
  readonly path: string
}

/** The realms of a gateway: one, or several that share the gateway and the store. */
export class Realms {
  readonly all: readonly [Realm, ...Realm[]]
  readonly #reservedPrefix: string
  readonly #upstreams: readonly UpstreamConfig[]
  /** The realms in which people sign in for each upstream. */
  readonly byUpstream: ReadonlyMap<UpstreamConfig, readonly Realm[]>
  readonly #routes: RouteTable
  readonly #providerCookie: ProviderCookie

  constructor(
    config: GatewayConfig,
    parts: RealmParts & { readonly providerCookie: ProviderCookie; readonly routes: RouteTable },
  ) {
    const [first, ...others] = config.providers
    this.all = [new Realm(first, config, parts), ...others.map((provider) => new Realm(provider, config, parts))]
    this.#reservedPrefix = config.reservedPrefix
    this.#upstreams = config.upstreams
    this.byUpstream = new Map(config.upstreams.map((upstream) => [upstream, this.#named(upstream.providers)]))
    this.#routes = parts.routes
    this.#providerCookie = parts.providerCookie
  }

  /** Begins to discover the providers, and to receive their signals. */
  start(): void {
    for (const { provider, decryptionKeys } of this.all) {
      provider.start()
      decryptionKeys.start()
    }
    for (const { receiver } of this.all) receiver?.start()
  }

  /** Sends no further requests to transmitters. Events that are being carried out are finished. */
  async stopReceivers(): Promise<void> {
    await Promise.all(this.all.flatMap(({ receiver }) => receiver?.stop() ?? []))
  }

  /** Whether all providers have been found, and the keys for what they encrypt. */
  get isKnown(): boolean {
    return this.all.every(({ provider, decryptionKeys }) => provider.isKnown && decryptionKeys.isReady)
  }

  /** Adds the decryption keys of the previous generation. */
  takeOverKeys(other: Realms): void {
    for (const { audience, prefix, decryptionKeys } of this.all) {
      const former =
        other.all.find((realm) => realm.audience === audience) ?? other.all.find((realm) => realm.prefix === prefix)
      if (former !== undefined) decryptionKeys.takeOver(former.decryptionKeys)
    }
  }

  /** The realms in which people sign in for an upstream. */
  ofUpstream(upstream: UpstreamConfig): readonly Realm[] {
    return this.byUpstream.get(upstream) ?? []
  }

  of(provider: ProviderConfig): Realm {
    return this.all.find(({ config }) => config.name === provider.name) ?? this.all[0]
  }

  /** The realm whose session a request has, by the cookie of the request. */
  ofSession(upstream: UpstreamConfig, session: SessionKey | undefined, cookieHeader: string | undefined): Realm {
    const isIn = ({ cookie }: Realm) => {
      const id = cookie.read(cookieHeader)
      return id !== undefined && sessionKey(id) === session
    }
    return this.ofUpstream(upstream).find(isIn) ?? this.all[0]
  }

  /**
   * The realm of the person who sent a form: that of the session, also of one that has ended, or
   * else the one in which the person of the browser signed in last.
   * @param prefix the path of the endpoints of the realm; another path when it is unknown
   */
  ofForm(upstream: UpstreamConfig, prefix: string, cookieHeader: string | undefined): Realm {
    const realms = this.ofUpstream(upstream)
    return (
      realms.find((realm) => realm.prefix === prefix) ??
      realms.find(({ personCookie }) => personCookie.read(cookieHeader) !== undefined) ??
      realms[0] ??
      this.all[0]
    )
  }

  /** The other realms in which people sign in for the same upstreams. */
  besides(realm: Realm): readonly Realm[] {
    const shared = [...this.byUpstream.values()].filter((realms) => realms.includes(realm)).flat()
    return this.all.filter((other) => other !== realm && shared.includes(other))
  }

  /**
   * Which realm a request at a path of no provider means, among those of the first page that
   * belongs to an application or a provider, or else of the host: the one with a session of this
   * browser, the only one, or the one that was chosen last time. For a sign-in, the person has to
   * choose otherwise.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async meant(request: {
    readonly host: string
    readonly cookie: string | undefined
    /** The pages that the request is about, the one that counts most first. */
    readonly pages: readonly PageOfHost[]
  }): Promise<Meant> {
    if (this.all.length === 1) return { realm: this.all[0], choices: [], candidates: this.all }
    const candidates = this.#candidates(request.host, request.pages)
    const [first = this.all[0], ...others] = candidates
    if (others.length === 0) return { realm: first, choices: [], candidates: [first] }
    const withCookie = candidates.filter(({ cookie }) => cookie.isIn(request.cookie))
    for (const realm of withCookie)
      if ((await sessionOf(request.cookie, realm)) !== undefined) return { realm, choices: [], candidates }
    const remembered = this.#providerCookie.read(request.cookie)
    const again = withCookie[0] ?? candidates.find(({ config }) => config.name === remembered)
    if (again !== undefined) return { realm: again, choices: [], candidates }
    return { realm: first, choices: candidates.map(({ config }) => config), candidates }
  }

  /** Resolves when no call to a provider is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.all.map(({ upkeep }) => upkeep.settled()))
  }

  /** Resolves when each call to a provider, and its one retry, has ended or timed out. */
  callsEnd(): Promise<void> {
    const longestMs = Math.max(...this.all.map(({ config }) => config.timeoutMs))
    return wait(longestMs * 2, undefined, { ref: false })
  }

  #candidates(host: string, pages: readonly PageOfHost[]): readonly Realm[] {
    for (const page of pages) {
      const realms = this.#ofPage(page)
      if (realms !== undefined) return realms
    }
    // An endpoint of another host means the applications of that host.
    const [page] = pages
    const ofHost = upstreamsOfHost(page?.host ?? host, this.#upstreams).flatMap((each) => this.ofUpstream(each))
    return [...new Set(ofHost)]
  }

  /** The realms of a page; `undefined` for one that belongs to no application and no provider. */
  #ofPage({ host, path }: PageOfHost): readonly Realm[] | undefined {
    const ofPrefix = this.all.find(({ prefix }) => path.startsWith(prefix))
    if (ofPrefix !== undefined) return [ofPrefix]
    // An upstream at "/" does not serve the pages of the gateway.
    if (path.startsWith(this.#reservedPrefix)) return undefined
    try {
      const route = this.#routes.route(host, 'GET', canonicalTarget(path))
      return route && this.ofUpstream(route.upstream)
    } catch (error) {
      // The path is ambiguous.
      if (error instanceof GatewayError) return undefined
      throw error
    }
  }

  #named(names: readonly string[]): readonly Realm[] {
    return names.flatMap((name) => this.all.find(({ config }) => config.name === name) ?? [])
  }
}
