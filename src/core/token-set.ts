/**
 * The tokens of a token response, with the names of RFC 6749 §5.1 and OpenID Connect Core §3.1.3.3.
 */
export interface TokenSet {
  readonly access_token: string
  /** When the token request was sent, in ms since the epoch. */
  readonly obtained_at: number
  /**
   * In ms since the epoch. Without `expires_in`, an hour is assumed if there is a refresh token;
   * otherwise it is absent.
   */
  readonly access_token_expires_at?: number
  readonly refresh_token?: string
  /** The latest ID Token, for `id_token_hint`. */
  readonly id_token: string
}
