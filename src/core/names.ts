declare const brand: unique symbol

/** A string that has been checked once, at the border, and is trusted from there on. */
export type Branded<B extends string> = string & { readonly [brand]: B }

/** The value of the session cookie: a bearer secret, never stored and never logged. */
export type SessionId = Branded<'SessionId'>

/**
 * Where a session lies in a store: `TAG:HASH`. The tag groups what belongs to one (iss, sid); the
 * hash is of the SessionId.
 */
export type SessionKey = Branded<'SessionKey'>

/** What all sessions of one (iss, sid) share: a hash, safe to show. */
export type SidTag = Branded<'SidTag'>

/** What all sessions of one (iss, sub) share: a hash, safe to show. */
export type SubTag = Branded<'SubTag'>
