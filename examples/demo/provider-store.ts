import type { Adapter, AdapterPayload } from 'oidc-provider'
import { systemClock } from '../../src/core/clock.ts'

interface Entry {
  payload: AdapterPayload
  readonly expiresAt: number
}

/** Limits the memory of a demo that runs for weeks. */
const maxEntriesPerModel = 5_000

/**
 * The data of the provider in memory, by model and id. Can remove all entries of one session.
 */
export class ProviderStore {
  readonly #models = new Map<string, Map<string, Entry>>()

  /** The adapter of oidc-provider for one model. */
  readonly adapter = (model: string): Adapter => {
    const entries = this.#entries(model)
    const findBy = async (name: 'uid' | 'userCode', value: string) =>
      [...liveEntries(entries)].find(([, payload]) => payload[name] === value)?.[1]
    return {
      upsert: async (id, payload, expiresIn = Infinity) => {
        entries.delete(id)
        entries.set(id, { payload, expiresAt: systemClock.now() + expiresIn * 1000 })
        evictOldest(entries)
      },
      find: async (id) => payloadOf(entries.get(id)),
      findByUid: (uid) => findBy('uid', uid),
      findByUserCode: (userCode) => findBy('userCode', userCode),
      consume: async (id) => {
        const entry = entries.get(id)
        if (entry) entry.payload = { ...entry.payload, consumed: Math.floor(systemClock.now() / 1000) }
      },
      destroy: async (id) => void entries.delete(id),
      revokeByGrantId: async (grantId) => removeByGrant(entries, grantId),
    }
  }

  /** The sessions of signed-in people. */
  sessions(): readonly AdapterPayload[] {
    return [...liveEntries(this.#entries('Session'))].map(([, payload]) => payload).filter((each) => each.accountId)
  }

  /** Removes a session and all tokens that were issued for it alone, in one step. */
  removeSession(session: AdapterPayload): void {
    for (const [id, { payload }] of this.#entries('Session'))
      if (payload.uid === session.uid) this.#entries('Session').delete(id)
    for (const { grantId } of Object.values(session.authorizations ?? {})) {
      if (grantId === undefined) continue
      for (const entries of this.#models.values())
        removeByGrant(entries, grantId, (payload) => payload['expiresWithSession'] === true)
      const isUsed = [...this.#models.values()].some((entries) => hasGrant(entries, grantId))
      if (!isUsed) this.#entries('Grant').delete(grantId)
    }
  }

  #entries(model: string): Map<string, Entry> {
    const existing = this.#models.get(model)
    if (existing) return existing
    const entries = new Map<string, Entry>()
    this.#models.set(model, entries)
    return entries
  }
}

function payloadOf(entry: Entry | undefined): AdapterPayload | undefined {
  return entry && entry.expiresAt > systemClock.now() ? entry.payload : undefined
}

function* liveEntries(entries: ReadonlyMap<string, Entry>): Generator<readonly [string, AdapterPayload]> {
  for (const [id, entry] of entries) {
    const payload = payloadOf(entry)
    if (payload) yield [id, payload]
  }
}

/**
 * Removes expired and surplus entries, oldest first, because a Map keeps the order of insertion.
 */
function evictOldest(entries: Map<string, Entry>): void {
  for (const [id, entry] of entries) {
    if (entries.size <= maxEntriesPerModel && payloadOf(entry)) return
    entries.delete(id)
  }
}

function removeByGrant(
  entries: Map<string, Entry>,
  grantId: string,
  isMeant: (payload: AdapterPayload) => boolean = () => true,
): void {
  for (const [id, { payload }] of entries) if (payload.grantId === grantId && isMeant(payload)) entries.delete(id)
}

function hasGrant(entries: ReadonlyMap<string, Entry>, grantId: string): boolean {
  return [...liveEntries(entries)].some(([, payload]) => payload.grantId === grantId)
}
