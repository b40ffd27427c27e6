import type { SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import type { StoreNotice, Tombstone } from '../store.ts'

/** A message on the notices channel. Newer versions may send what this version does not know. */
export interface NoticeMessage {
  readonly from: string
  /** Present when the receivers are to confirm. */
  readonly id: string | undefined
  /** Whether the sender understands confirmations with a name. Earlier versions do not. */
  readonly wantsName: boolean
  readonly notice: StoreNotice | undefined
  readonly tombstone: Tombstone | undefined
}

/** The messages of one process, named `from`. */
export class NoticeMessages {
  readonly #from: string

  constructor(from: string) {
    this.#from = from
  }

  changed(key: SessionKey): string {
    return this.#text({ kind: 'changed', key })
  }

  /** With an `id`, each receiver confirms that it has dropped the sessions. */
  ended(keys: readonly SessionKey[], id?: string): string {
    return this.#text({ kind: 'ended', id, named: id !== undefined, keys })
  }

  /** A tombstone was raised. */
  raised(tombstone: Tombstone): string {
    return this.#text({ kind: 'ended', keys: [], tombstone })
  }

  /** An earlier notice could not be sent, so the receivers must drop all copies. */
  get missed(): string {
    return this.#text({ kind: 'anything' })
  }

  #text(message: object): string {
    return JSON.stringify({ from: this.#from, ...message })
  }
}

/** The confirmation of a notice, with the name of the process if the sender wants it. */
export function confirmationMessage(id: string, name: string | undefined): string {
  return name === undefined ? id : `${id} ${name}`
}

/** Reads a confirmation: the id of the notice, and the name of the process if it has one. */
export function confirmationIn(text: string): [id: string, name?: string] {
  const space = text.indexOf(' ')
  return space === -1 ? [text] : [text.slice(0, space), text.slice(space + 1)]
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
  const { from, id, named, kind, key, keys, tombstone } = message as Record<string, unknown>
  if (typeof from !== 'string') return undefined
  return {
    from,
    id: typeof id === 'string' ? id : undefined,
    wantsName: named === true,
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
  const { tag, at, ttl, issued_at } = value as Record<string, unknown>
  if (typeof tag !== 'string' || typeof at !== 'number' || typeof ttl !== 'number') return undefined
  return { tag: tag as SidTag | SubTag, at, ttl, ...(typeof issued_at === 'number' && { issued_at }) }
}
