import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { TokenSet } from '../../src/core/token-set.ts'
import type { Provider, Refreshed } from '../../src/provider/provider.ts'
import type { UpkeepParts } from '../../src/tokens/refresh.ts'
import { noApis, noClaims } from '../support/signing-provider.ts'

const accessTokenLifetime = 5 * 60_000

interface Grant {
  /** The valid refresh token; all earlier ones are used up. */
  token: string
  ended: boolean
}

/**
 * A provider with rotating refresh tokens. A token that is used twice ends its grant (RFC 9700
 * §4.14).
 */
export class RotatingProvider {
  /** Grants that ended because a refresh token was used twice. */
  readonly endedByReuse = new Set<string>()
  readonly #grants = new Map<string, Grant>()
  readonly #clock: { now(): number }
  #calls = 0

  constructor(clock: { now(): number }) {
    this.#clock = clock
  }

  issue(sub: string): TokenSet {
    const grant = randomUUID()
    this.#grants.set(grant, { token: `${grant}/0`, ended: false })
    return this.#tokens(`${grant}/0`, sub)
  }

  /** `spent`: a newer one was issued in its place; `ended`: its grant is over. */
  stateOf(refresh_token: string): 'good' | 'spent' | 'ended' {
    const grant = this.#grants.get(grantOf(refresh_token))
    if (grant === undefined || grant.ended) return 'ended'
    return grant.token === refresh_token ? 'good' : 'spent'
  }

  /** The provider as a replica sees it. `way` is awaited before and after each request. */
  seenFrom(way: () => Promise<void>): UpkeepParts['provider'] {
    const there = async () => {
      await way()
      await this.#slowness()
    }
    const back = there
    return {
      config: { timeoutMs: 100, ...noClaims } as Provider['config'],
      apis: noApis,
      refresh: async ({ refresh_token }) => {
        await there()
        const refreshed = this.#refresh(refresh_token)
        await back()
        return refreshed
      },
      userinfo: async (_access_token, sub) => {
        await there()
        await back()
        return { kind: 'claims', claims: { sub } }
      },
    }
  }

  #refresh(refresh_token: string): Refreshed {
    const grant = this.#grants.get(grantOf(refresh_token))
    if (grant === undefined || grant.ended) return { kind: 'invalid_grant' }
    const [name = '', count = ''] = refresh_token.split('/')
    if (grant.token !== refresh_token) {
      grant.ended = true
      this.endedByReuse.add(name)
      return { kind: 'invalid_grant' }
    }
    grant.token = `${name}/${Number(count) + 1}`
    return { kind: 'refreshed', tokens: this.#tokens(grant.token, '') }
  }

  /** Now quick, now slow, in ms; the same in each run of the same steps. */
  #slowness(): Promise<void> {
    this.#calls += 1
    return pause((this.#calls * 7) % 11)
  }

  #tokens(refresh_token: string, sub: string): TokenSet {
    const obtained_at = this.#clock.now()
    return {
      access_token: `access ${refresh_token}`,
      id_token: `e30.${Buffer.from(JSON.stringify({ sub })).toString('base64url')}.`,
      refresh_token,
      obtained_at,
      access_token_expires_at: obtained_at + accessTokenLifetime,
    }
  }
}

export function grantOf(refresh_token: string): string {
  return refresh_token.split('/')[0] ?? ''
}
