import type { GatewayConfig } from '../config/model/gateway.ts'
import { type JsonValue, readClaim } from '../core/claims.ts'
import { OperatorError, printable } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { browserText } from '../http/user-agent.ts'
import type { Sessions } from '../session/live/live-sessions.ts'
import { sidTag, subTag, type SessionRecord, type StoredSession } from '../session/record/record.ts'
import type { SessionStore } from '../session/store/store.ts'

/** How many sessions are read or ended at a time. */
const batchSize = 25

/**
 * Selects sessions that meet all of the given criteria. Without criteria: every session of this
 * client.
 */
export interface Selection {
  readonly key?: string
  readonly sub?: string
  readonly sid?: string
  /** The value of the claim `email`, in any case of letters, whether it is verified or not. */
  readonly email?: string
  /** The name of an upstream: selects the sessions that began at its origin. */
  readonly upstream?: string
  /**
   * A part of what the page shows of a session, in any case: its person, `sub`, `sid`, browser,
   * address, origin, an upstream at its origin, its provider, or `bound`.
   */
  readonly text?: string
}

/** One of these: whose sessions a program ends. */
export type PersonSelection = Pick<Selection, 'sub' | 'sid' | 'email'>

export interface ListOptions {
  /** By `performance.now()`, in ms: the list ends then, even when it is incomplete. */
  readonly deadline?: number
  /** Called with the number of sessions that were read since the last call. */
  readonly onRead?: (count: number) => void
}

/** A session, and when its last request was. See `LastUse.at`. */
export interface FoundSession extends StoredSession {
  readonly last_used_at: number | undefined
}

/**
 * The sessions of a selection. Records that cannot be opened are skipped: they belong to another
 * client, or are sealed with a removed key, and admit nobody.
 */
export async function* selected(
  selection: Selection,
  parts: {
    readonly config: OriginConfig & Pick<GatewayConfig, 'admin'>
    readonly store: SessionStore
    readonly sessions: Pick<Sessions, 'read' | 'lastUse'>
    readonly audiences: readonly string[]
    readonly providerNameOf: (audience: string) => string | undefined
    readonly emailOf: (session: StoredSession) => string | undefined
  } & Required<ListOptions>,
): AsyncIterable<FoundSession> {
  const { sub, sid } = selection
  const origin = originOf(selection.upstream, parts.config)
  const [text, email] = [selection.text?.toLowerCase(), selection.email?.toLowerCase()]
  const seen = new Set<SessionKey>()
  for await (const keys of keysOf(selection, parts.store, parts.audiences)) {
    if (performance.now() > parts.deadline) return
    const unseen = [...new Set(keys)].filter((key) => !seen.has(key))
    for (const key of unseen) seen.add(key)
    for (const some of chunksOf(unseen)) {
      if (performance.now() > parts.deadline) return
      const stored = await Promise.all(some.map((key) => parts.sessions.read(key)))
      parts.onRead(some.length)
      const matching = stored
        .filter((session) => session !== undefined)
        .filter(
          ({ record, audience, ...session }) =>
            (sub === undefined || record.sub === sub) &&
            (sid === undefined || record.sid === sid) &&
            (email === undefined || parts.emailOf({ record, audience, ...session })?.toLowerCase() === email) &&
            (origin === undefined || isOfUpstream(record, selection.upstream, origin)) &&
            (text === undefined || searchText(record, parts.providerNameOf(audience), parts.config).includes(text)),
        )
      const used = await Promise.all(matching.map((session) => parts.sessions.lastUse(session)))
      for (const [index, session] of matching.entries()) {
        const lastUse = used[index]
        if (lastUse !== undefined) yield { ...session, last_used_at: lastUse.at }
      }
    }
  }
}

/** Whether a session began at the origin of an upstream, or an access key is for the upstream. */
function isOfUpstream({ key, origin }: SessionRecord, upstream: string | undefined, wanted: string): boolean {
  return key === undefined ? origin === wanted : key.upstream === upstream
}

/** What a person uses a session with: a browser, or a program with an access key. */
export function clientText({ key, signed_in_with }: SessionRecord): string | undefined {
  return key === undefined ? browserText(signed_in_with?.user_agent) : `key “${key.name}” for ${key.upstream}`
}

/** What a search for a text looks at, in lower case. Only the shown claim is read. */
function searchText(
  record: SessionRecord,
  provider: string | undefined,
  { admin, upstreams }: Pick<GatewayConfig, 'admin' | 'upstreams'>,
): string {
  const { sub, sid, origin, device, signed_in_with, key } = record
  const showClaim = admin?.page?.showClaim
  const texts = [
    showClaim && personText(readClaim(record.claims, showClaim)),
    ...[sub, sid, origin, provider],
    clientText(record),
    key?.used?.address ?? signed_in_with?.address,
    ...upstreams.filter(({ externalUrl }) => externalUrl.origin === origin).map(({ name }) => name),
    device === undefined ? 'not bound' : 'bound to a device',
  ]
  return texts
    .filter((text) => text !== undefined)
    .join('\n')
    .toLowerCase()
}

/**
 * The keys of the sessions that may be in a selection: the indexes know `sid`, `sub` and no more.
 */
export async function* keysOf(
  { key, sub, sid }: Selection,
  store: SessionStore,
  audiences: readonly string[],
): AsyncIterable<readonly SessionKey[]> {
  if (key !== undefined) yield isSessionKey(key) ? [key] : []
  else if (sid !== undefined) for (const audience of audiences) yield await store.listSid(sidTag(audience, sid))
  else if (sub !== undefined) for (const audience of audiences) yield await store.listSub(subTag(audience, sub))
  else yield* store.list()
}

type OriginConfig = Pick<GatewayConfig, 'upstreams' | 'file' | 'session' | 'externalUrl'>

/** The origin at which the sessions of an upstream begin. */
function originOf(
  name: string | undefined,
  { upstreams, file, session, externalUrl }: OriginConfig,
): string | undefined {
  if (name === undefined) return undefined
  const upstream = upstreams.find((candidate) => candidate.name === name)
  if (upstream === undefined) throw new OperatorError(`${file} has no upstream "${name}"`)
  return session.cookie.domain === undefined ? upstream.externalUrl.origin : externalUrl.origin
}

function isSessionKey(text: string): text is SessionKey {
  return /^[\w-]{24}:[\w-]{32}$/.test(text)
}

/** The longest value of `admin.page.show_claim` that is shown, in characters. */
const maxPersonLength = 80

/** The value of a claim on one line, truncated. `undefined`: it is absent or empty. */
export function personText(value: JsonValue | undefined): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // A character has two code units at most.
  const [...characters] = printable(text.slice(0, 2 * maxPersonLength + 2))
  return characters.length <= maxPersonLength
    ? characters.join('')
    : `${characters.slice(0, maxPersonLength).join('')}…`
}

/** Parts of a list, each with as many members as are handled at a time. */
export function chunksOf<T>(list: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(list.length / batchSize) }, (_, n) =>
    list.slice(n * batchSize, (n + 1) * batchSize),
  )
}
