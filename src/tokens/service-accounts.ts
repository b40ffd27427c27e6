import type { ServiceAccountsConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import type { Claims } from '../core/claims.ts'
import type { Clock } from '../core/clock.ts'
import type { Credentials } from '../core/credentials.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { createKeyedHash } from '../core/random.ts'
import { hasHash, type ScryptHash, usualCosts } from '../core/scrypt-hash.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { Principal, PrincipalRecord } from '../session/record/record.ts'

/** How long a secret that was right is not computed again, in ms, and how many are remembered. */
const rememberMs = 5 * 60 * 1000
const maxRemembered = 10_000
/** How many names with the addresses that used them are remembered. */
const maxProven = 10_000

export type AccountIdentity =
  | (Principal & { readonly kind: 'accepted'; readonly clockToleranceMs: number })
  /** `account`: its name, if there is such an account. */
  | { readonly kind: 'refused'; readonly why: string; readonly account?: string | undefined }
  | { readonly kind: 'limited'; readonly why: string; readonly waitMs: number }
  | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string }

/** How often something may happen: see `ClientBudget`. */
interface Budget {
  take(client: string): number
  giveBack(client: string): void
  waitMs(client: string): number
}

/** What protects processor and memory from a flood of wrong secrets. It outlives a reload. */
export interface AccountLimits {
  /** How many wrong secrets each client may send. */
  readonly perClient: Budget
  /** How many wrong secrets there may be for each name. */
  readonly perAccount: Budget
  /** Clients whose secret was right, with the name. */
  readonly proven: ReturnType<typeof createProvenClients>
  /** The computations that run at once, and those that wait: see `FairQueue`. */
  readonly turns: {
    isFullFor(client: string): boolean
    enter(client: string, begin: () => void): boolean
    leave(client: string): readonly (() => void)[]
  }
  readonly rejected: (limit: string, client: string) => void
}

/** The clients whose secret was right, with the name; none at first. */
export function createProvenClients() {
  return new BoundedMap<string, true>('service_account_clients', maxProven)
}

export interface ServiceAccountsParts {
  readonly clock: Clock
  readonly limits: AccountLimits
  /** The `iss` of the accounts. */
  readonly issuer: string
}

/**
 * Verifies the secrets of service accounts. A hash takes time and memory by design, so a right
 * secret is remembered for five minutes, as a keyed hash. A reload begins with a new object.
 */
export class ServiceAccounts {
  readonly #parts: ServiceAccountsParts
  readonly #hash = createKeyedHash()
  /** The keyed hashes of upstream, name and right secret. */
  readonly #remembered: BoundedMap<string, true>
  readonly #underWay = new SingleFlight<string, boolean>()
  readonly #records = new Map<string, PrincipalRecord>()

  constructor(parts: ServiceAccountsParts) {
    this.#remembered = new BoundedMap('service_account_secrets', maxRemembered, {
      lifetimeMs: rememberMs,
      clock: parts.clock,
    })
    this.#parts = parts
  }

  /**
   * Who sends a request with these credentials. Returns no promise when the secret is remembered.
   * @param client the name that `clientOf` gives to the address of the client
   */
  identify(
    { name, secret }: Credentials,
    upstream: Pick<UpstreamConfig, 'name'>,
    accepts: ServiceAccountsConfig,
    client: string,
  ): AccountIdentity | Promise<AccountIdentity> {
    const key = this.#hash(upstream.name, name, secret)
    if (this.#remembered.has(key)) return this.#accepted(name, upstream, accepts)
    const limited = this.#limitFor(name, client)
    if (limited !== undefined) return limited
    if (this.#parts.limits.turns.isFullFor(client))
      return { kind: 'unavailable', code: 'ERR_OVERLOADED', why: 'too many secrets of service accounts are verified' }
    return this.#underWay
      .run(key, () => this.#verify({ name, secret }, accepts, client))
      .then((isRight) => {
        if (!isRight) return refusal(name, accepts)
        this.#remembered.set(key, true)
        return this.#accepted(name, upstream, accepts)
      })
  }

  /** A client that knew the secret before is not locked out by wrong secrets of others. */
  #limitFor(name: string, client: string): AccountIdentity | undefined {
    const { perClient, perAccount, proven, rejected } = this.#parts.limits
    const ofClient = perClient.waitMs(client)
    const ofAccount = proven.has(provenKey(name, client)) ? 0 : perAccount.waitMs(name)
    const waitMs = Math.max(ofClient, ofAccount)
    if (waitMs === 0) return undefined
    const what = ofClient > 0 ? 'client' : 'service account'
    rejected(`wrong secrets of service accounts, for each ${what}`, client)
    return { kind: 'limited', why: `too many wrong secrets for one ${what}`, waitMs }
  }

  /** Counts as wrong until the result is known, so that many attempts at once count too. */
  async #verify({ name, secret }: Credentials, accepts: ServiceAccountsConfig, client: string): Promise<boolean> {
    const { perClient, perAccount, turns } = this.#parts.limits
    const budgets = [
      [perClient, client],
      [perAccount, name],
    ] as const
    const counted = budgets.filter(([budget, key]) => budget.take(key) === 0)
    await new Promise<void>((begin) => {
      if (turns.enter(client, begin)) begin()
    })
    try {
      const isRight = await this.#isRight(name, secret, accepts)
      if (isRight) {
        for (const [budget, key] of counted) budget.giveBack(key)
        this.#parts.limits.proven.set(provenKey(name, client), true)
      }
      return isRight
    } finally {
      for (const begin of turns.leave(client)) begin()
    }
  }

  /** An unknown name takes as long as some account, always the same one. */
  async #isRight(name: string, secret: string, { accounts }: ServiceAccountsConfig): Promise<boolean> {
    const own = accounts.filter((account) => account.name === name)
    const standIn = accounts[Number.parseInt(this.#hash(name).slice(0, 8), 16) % accounts.length]?.name
    const hashes = (own.length > 0 ? own : accounts.filter((account) => account.name === standIn)).map(
      ({ hash }) => hash,
    )
    let isRight = false
    for (const hash of hashes.length > 0 ? hashes : [nobody]) isRight = (await hasHash(secret, hash)) || isRight
    return isRight && own.length > 0
  }

  #accepted(name: string, { name: upstream }: Pick<UpstreamConfig, 'name'>, accepts: ServiceAccountsConfig) {
    const key = JSON.stringify([upstream, name])
    const record = this.#records.get(key) ?? recordOfAccount(name, accepts, this.#parts.issuer)
    this.#records.set(key, record)
    return { kind: 'accepted', record, clockToleranceMs: 0 } as const
  }
}

const nobody: ScryptHash = { ...usualCosts, salt: Buffer.alloc(16), hash: Buffer.alloc(32) }

export function provenKey(name: string, client: string): string {
  return `${client} ${name}`
}

function refusal(name: string, { accounts }: ServiceAccountsConfig): AccountIdentity {
  return accounts.some((account) => account.name === name)
    ? { kind: 'refused', why: `the secret of the service account ${name} is wrong`, account: name }
    : { kind: 'refused', why: 'there is no service account with this name' }
}

/**
 * What headers and rules read of a service account. No provider has a `sub` that contains its
 * `iss`, and `sub` begins with a text of its own for applications that look at `sub` alone.
 */
export function recordOfAccount(
  name: string,
  { claims: ofAccounts }: Pick<ServiceAccountsConfig, 'claims'>,
  iss: string,
): PrincipalRecord {
  const sub = `service-account/${name}`
  // A name may be that of a member which every object has.
  const own = Object.hasOwn(ofAccounts, name) ? ofAccounts[name] : {}
  const claims: Claims = { ...own, iss, sub, client_id: name }
  return { iss, sub, claims, absolute_expires_at: Infinity, tokens: {} }
}
