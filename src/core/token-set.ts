/** The tokens of a token response, named as in RFC 6749 §5.1 and OpenID Connect Core §3.1.3.3. */
export interface TokenSet {
  readonly access_token: string
  /** When the token request was sent, in ms since the epoch. */
  readonly obtained_at: number
  /** In ms since the epoch. Without `expires_in`: an hour with a refresh token, or absent. */
  readonly access_token_expires_at?: number | undefined
  readonly refresh_token?: string | undefined
  /** The latest ID Token, for `id_token_hint`. */
  readonly id_token: string
  /** The private key that the access token is bound to (RFC 9449). Absent: it is a bearer token. */
  readonly dpop_key?: DpopKey | undefined
}

/** A private key on the curve P-256, as a JWK (RFC 7518 §6.2). */
export interface DpopKey {
  readonly kty: 'EC'
  readonly crv: 'P-256'
  readonly x: string
  readonly y: string
  readonly d: string
}
