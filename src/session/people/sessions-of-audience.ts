import type { SessionId, SessionKey } from '../../core/names.ts'
import type { Cause } from '../../observe/audit.ts'
import type { LastUse, SessionExpiry, Sessions } from '../live/sessions.ts'
import type { SessionRecord, StoredSession } from '../record/record.ts'

/**
 * The sessions of one audience (see `audienceOf`); those of others do not exist here, even if a
 * cookie names them. Each method is that of {@link Sessions}.
 */
export class SessionsOfAudience {
  readonly audience: string
  readonly #sessions: Sessions

  constructor(audience: string, sessions: Sessions) {
    this.audience = audience
    this.#sessions = sessions
  }

  findInMemory(key: SessionKey): StoredSession | undefined {
    return this.#own(this.#sessions.findInMemory(key))
  }

  async find(key: SessionKey): Promise<StoredSession | undefined> {
    return this.#own(await this.#sessions.find(key))
  }

  async peek(key: SessionKey): Promise<StoredSession | undefined> {
    return this.#own(await this.#sessions.peek(key))
  }

  async read(key: SessionKey): Promise<StoredSession | undefined> {
    return this.#own(await this.#sessions.read(key))
  }

  async expiry(key: SessionKey): Promise<SessionExpiry | undefined> {
    return this.#own(await this.#sessions.expiry(key))
  }

  lastUse(session: StoredSession): Promise<LastUse | undefined> {
    return this.#sessions.lastUse(session)
  }

  create(
    record: Omit<SessionRecord, 'created_at' | 'absolute_expires_at'>,
    begun_at: number,
    cause?: Cause,
  ): Promise<SessionId | undefined> {
    return this.#sessions.create(this.audience, record, begun_at, cause)
  }

  replace(previous: StoredSession, record: SessionRecord): Promise<StoredSession | 'conflict' | 'gone'> {
    return this.#sessions.replace(previous, record)
  }

  #own<T extends { readonly audience: string }>(session: T | undefined): T | undefined {
    return session?.audience === this.audience ? session : undefined
  }
}
