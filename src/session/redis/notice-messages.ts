import type { SessionKey, SidTag, SubTag } from '../../core/names.ts'
import type { StoreNotice, Tombstone } from '../store.ts'

/** A message on the notices channel. Newer versions may send what this version does not know. */
export interface NoticeMessage {
  /** The process that sent it. */
  readonly from: string
  /** Present when the receivers are to confirm. */
  readonly id: string | undefined
  readonly notice: StoreNotice | undefined
  readonly tombstone: Tombstone | undefined
}

/** One session was changed. */
export function changedMessage(from: string, key: SessionKey): string {
  return JSON.stringify({ from, kind: 'changed', key })
}

/** Sessions have ended. With an `id`, each receiver confirms that it has dropped them. */
export function endedMessage(from: string, keys: readonly SessionKey[], id?: string): string {
  return JSON.stringify({ from, kind: 'ended', id, keys })
}

/** A tombstone was raised. */
export function tombstoneMessage(from: string, tombstone: Tombstone): string {
  return JSON.stringify({ from, kind: 'ended', keys: [], tombstone })
}

/** An earlier notice could not be sent, so the receivers must drop all copies. */
export function missedMessage(from: string): string {
  return JSON.stringify({ from, kind: 'anything' })
}

/** @returns `undefined` when the text is no message */
export function parseMessage(text: string): NoticeMessage | undefined {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof message !== 'object' || message === null) return undefined
  const { from, id, kind, key, keys, tombstone } = message as Record<string, unknown>
  if (typeof from !== 'string') return undefined
  return {
    from,
    id: typeof id === 'string' ? id : undefined,
    notice: noticeOf(kind, key, keys),
    tombstone: tombstoneOf(tombstone),
  }
}

function noticeOf(kind: unknown, key: unknown, keys: unknown): StoreNotice | undefined {
  if (kind === 'changed' && typeof key === 'string') return { kind, key: key as SessionKey }
  if (kind === 'ended' && Array.isArray(keys)) return { kind, keys: keys as SessionKey[] }
  return undefined
}

function tombstoneOf(value: unknown): Tombstone | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { tag, at, ttl } = value as Record<string, unknown>
  if (typeof tag !== 'string' || typeof at !== 'number' || typeof ttl !== 'number') return undefined
  return { tag: tag as SidTag | SubTag, at, ttl }
}
