// Aggregated and distributed claims (OpenID Connect Core §5.6.2).
import { decodeJwt, type JWTPayload } from 'jose'
import type { ClaimsProviderConfig, ProviderConfig } from '../config/model/provider.ts'
import type { Claims, JsonValue } from '../core/claims.ts'
import { reason } from '../core/errors.ts'
import { isDeeperThan, isObject, type JsonObject, maxJsonDepth } from '../core/json.ts'
import { longestToken } from './encrypted-token.ts'
import { KeySet } from './key-set.ts'
import type { RequestParts } from './outbound.ts'
import { algorithmsFor, verifyJwt } from './signed-token.ts'

/** More sources of one person are not read. */
const maxSources = 10

type Config = Pick<ProviderConfig, 'claimSources' | 'client_id' | 'clockToleranceMs' | 'profile'>

/** Why the claims of a source do not count. */
class SourceError extends Error {}

/** Reads the claims that a provider passes on for other issuers: those of `claim_sources`. */
export class ClaimSources {
  readonly #config: Config
  readonly #parts: RequestParts
  readonly #keys: ReadonlyMap<ClaimsProviderConfig, KeySet>

  constructor(config: Config, parts: RequestParts) {
    this.#config = config
    this.#parts = parts
    this.#keys = new Map(
      config.claimSources.map((source) => [source, new KeySet({ ...parts, jwksUri: async () => source.jwks_uri })]),
    )
  }

  /**
   * The claims of UserInfo, with those of other issuers whose names are `needed`. A claim that
   * cannot be read or verified stays in `_claim_names`, so it is withheld; the log says why.
   */
  async resolve(claims: Claims, needed: readonly string[]): Promise<Claims> {
    const { _claim_names: names, _claim_sources: sources } = claims
    if (!isObject(names) || !isObject(sources)) return claims
    const wanted = needed.filter((name) => Object.hasOwn(names, name))
    const used = [...new Set(wanted.map((name) => String(names[name])))].slice(0, maxSources)
    const payloads = new Map(await Promise.all(used.map(async (id) => [id, await this.#read(sources, id)] as const)))
    const found = wanted.flatMap((name): [string, JsonValue][] => {
      const payload = payloads.get(String(names[name]))
      return payload !== undefined && Object.hasOwn(payload, name) ? [[name, payload[name] as JsonValue]] : []
    })
    const others = Object.entries(names).filter(([name]) => !found.some(([known]) => known === name))
    return { ...claims, ...Object.fromEntries(found), _claim_names: Object.fromEntries(others) as Claims }
  }

  async #read(sources: JsonObject, id: string): Promise<JWTPayload | undefined> {
    const source = Object.hasOwn(sources, id) ? sources[id] : undefined
    try {
      if (!isObject(source)) throw new SourceError('_claim_sources does not have it')
      const { JWT: jwt, endpoint } = source
      if (typeof jwt === 'string') return await this.#verify(jwt, this.#config.claimSources)
      if (typeof endpoint !== 'string') throw new SourceError('it has neither JWT nor endpoint')
      return await this.#fetch(endpoint, source)
    } catch (error) {
      const hint =
        'Name its issuer, keys and endpoint in provider.claim_sources, or read the claim with provider.claims_from.'
      this.#parts.log.warn('provider.claim_source_failed', { source: id.slice(0, 100), reason: reason(error), hint })
      return undefined
    }
  }

  /** Only at origins that the configuration names: the address comes from outside. */
  async #fetch(endpoint: string, { access_token }: JsonObject): Promise<JWTPayload> {
    const url = URL.parse(endpoint)
    const accepted = this.#config.claimSources.filter(({ endpoints }) => url !== null && endpoints.includes(url.origin))
    if (url === null || accepted.length === 0) throw new SourceError('its endpoint is not in provider.claim_sources')
    if (url.username !== '' || url.password !== '') throw new SourceError('its endpoint has a user name')
    if (access_token !== undefined && !isToken(access_token)) throw new SourceError('its access_token is unusable')
    const response = await this.#parts.outbound.fetch(url.href, {
      headers: {
        accept: 'application/jwt',
        ...(access_token !== undefined && { authorization: `Bearer ${access_token}` }),
      },
    })
    if (response.status !== 200) throw new SourceError(`its endpoint responded with status ${response.status}`)
    return this.#verify((await response.text()).trim(), accepted)
  }

  /**
   * Verifies the signature, `iss`, and `exp` and `aud` if there are any. `sub` is that of the
   * person at the issuer, and not compared.
   */
  async #verify(jwt: string, accepted: readonly ClaimsProviderConfig[]): Promise<JWTPayload> {
    if (jwt.length > longestToken) throw new SourceError(`its JWT is longer than ${longestToken} characters`)
    const source = accepted.find(({ issuer }) => issuer === issuerOf(jwt))
    const keys = source && this.#keys.get(source)
    if (source === undefined || keys === undefined)
      throw new SourceError('the issuer of its JWT is not in provider.claim_sources')
    const { client_id, clockToleranceMs } = this.#config
    const expected = { issuer: source.issuer, keys, clockToleranceMs, now: this.#parts.clock.now() }
    const options = { algorithms: [...algorithmsFor(this.#config)], requiredClaims: ['iss'] }
    const { payload } = await verifyJwt(jwt, expected, options, (cause) => {
      throw new SourceError(`its JWT is refused: ${reason(cause)}`)
    })
    if (payload.aud !== undefined && ![payload.aud].flat().includes(client_id))
      throw new SourceError('its JWT is for another client')
    if (isDeeperThan(maxJsonDepth, payload)) throw new SourceError('its claims are nested too deeply')
    return payload
  }
}

function isToken(value: unknown): value is string {
  // RFC 6750 §2.1.
  return typeof value === 'string' && /^[\w.~+/-]+=*$/.test(value)
}

function issuerOf(jwt: string): unknown {
  try {
    return decodeJwt(jwt).iss
  } catch {
    throw new SourceError('its JWT cannot be read')
  }
}
