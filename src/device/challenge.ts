import type { Clock } from '../core/clock.ts'
import type { SessionKey } from '../core/names.ts'
import type { Keyring } from '../core/seal.ts'

/** What a proof is for. A challenge for one purpose is useless for another. */
export type ProofPurpose = 'registration' | 'refresh'

/** How long a challenge is valid, in ms. Making a key may take a TPM some seconds. */
const lifetimeMs = { registration: 5 * 60_000, refresh: 60_000 } as const satisfies Record<ProofPurpose, number>
/** How far the clocks of replicas may differ, in ms. */
const toleranceMs = 30_000
/** The longest challenge or session identifier, in characters. */
const maxLength = 400

/**
 * The challenges that browsers sign, and the names of sessions for browsers. Both are sealed, not
 * stored: any replica can open them, and only a replica can make one.
 */
export class Challenges {
  readonly #keyring: Keyring
  readonly #clock: Clock

  constructor({ keyring, clock }: { readonly keyring: Keyring; readonly clock: Clock }) {
    this.#keyring = keyring
    this.#clock = clock
  }

  create(key: SessionKey, purpose: ProofPurpose): string {
    return this.#seal(JSON.stringify({ key, at: this.#clock.now() } satisfies Challenge), `challenge for ${purpose}`)
  }

  /** The session of a challenge; `undefined` when it is not from this gateway, or is too old. */
  sessionOf(challenge: string, purpose: ProofPurpose): SessionKey | undefined {
    const plain = this.#open(challenge, `challenge for ${purpose}`)
    if (plain === undefined) return undefined
    const { key, at } = JSON.parse(plain) as Challenge
    const age = this.#clock.now() - at
    return age >= -toleranceMs && age <= lifetimeMs[purpose] ? key : undefined
  }

  /** The name of a session in the browser (§8.6). It gives access to nothing. */
  identifier(key: SessionKey): string {
    return this.#seal(key, 'session identifier')
  }

  /** The session with this identifier; `undefined` when it is not from this gateway. */
  sessionWith(identifier: string): SessionKey | undefined {
    return this.#open(identifier, 'session identifier') as SessionKey | undefined
  }

  #seal(plain: string, use: string): string {
    return this.#keyring.seal(plain, `gatehouse device ${use}`).toString('base64url')
  }

  #open(sealed: string, use: string): string | undefined {
    if (sealed.length > maxLength || !/^[\w-]+$/.test(sealed)) return undefined
    return this.#keyring.open(Buffer.from(sealed, 'base64url'), `gatehouse device ${use}`)?.toString('utf8')
  }
}

interface Challenge {
  readonly key: SessionKey
  /** When it was created, in ms since the epoch. */
  readonly at: number
}
