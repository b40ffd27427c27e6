declare const brand: unique symbol

/** A string that has been validated once and is trusted afterwards. */
export type Branded<B extends string> = string & { readonly [brand]: B }

/** The value of the session cookie: a bearer secret, never stored and never logged. */
export type SessionId = Branded<'SessionId'>

/**
 * The key of a session in a store: `TAG:HASH`. The tag groups what belongs to one (iss, sid); the
 * hash is of the SessionId.
 */
export type SessionKey = Branded<'SessionKey'>

/** The common tag of all sessions of one (iss, sid): a hash, safe to show. */
export type SidTag = Branded<'SidTag'>

/** The common tag of all sessions of one (iss, sub): a hash, safe to show. */
export type SubTag = Branded<'SubTag'>

/**
 * The key of a kept request in a store: `TAG:HASH`. The tag is the SubTag of its person; the hash
 * is of the secret that only the browser has.
 */
export type KeptKey = Branded<'KeptKey'>
