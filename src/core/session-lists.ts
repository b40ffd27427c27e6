// What a person sees of their own sessions and keys. Times are in ms since the epoch.

/** What a person may recognize a browser by. */
export interface Browser {
  /** With its major version, such as `Firefox 140`. */
  readonly name: string
  /** The operating system, such as `Windows`. Absent: it is not known. */
  readonly system: string | undefined
}

export interface ListedSession {
  /** Names the session in a form: only this browser can make one, and only for this person. */
  readonly token: string
  readonly isCurrent: boolean
  /** The client at the sign-in. Absent: it is not known. */
  readonly browser: Browser | undefined
  readonly address: string | undefined
  readonly signedInAt: number
  /** To within a tenth of the idle timeout. Absent: it is not known. */
  readonly lastUsedAt: number | undefined
  /** Whether it is bound to the device. */
  readonly isBound: boolean
}

export interface SessionList {
  readonly sessions: readonly ListedSession[]
  /** Names all sessions except the current one in a form. */
  readonly othersToken: string
  /** Whether there are more sessions than these. */
  readonly hasMore: boolean
}

/** An access key, which a program has. */
export interface ListedKey {
  /** Names the key in a form, as that of a session does. */
  readonly token: string
  readonly name: string
  readonly upstream: string
  readonly madeAt: number
  readonly endsAt: number
  /** Absent: no program has used it. */
  readonly used?: { readonly at: number; readonly address: string }
}

export interface KeyList {
  readonly keys: readonly ListedKey[]
  /** Names all keys in a form. */
  readonly allToken: string
  /** Proves that the page with the keys has the form for a new one. */
  readonly newToken: string
}
