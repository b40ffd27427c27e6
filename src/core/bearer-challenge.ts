import { type StepUp, stepUpParameters } from './step-up.ts'

/** How to get access with an access token (RFC 6750 §3). Without `error`, none was sent. */
export interface BearerChallenge {
  readonly error?: 'invalid_token' | 'insufficient_scope' | 'insufficient_user_authentication' | undefined
  /** The scopes that the request needs. */
  readonly scopes?: readonly string[] | undefined
  /** The authentication that the request needs (RFC 9470 §3). */
  readonly stepUp?: StepUp | undefined
  /** The URL of the metadata of the resource (RFC 9728 §5.1). */
  readonly metadata?: string | undefined
}

/** The value of `WWW-Authenticate`. Quotes and backslashes in values are escaped. */
export function bearerChallenge({ error, scopes = [], stepUp, metadata }: BearerChallenge): string {
  const parameters = {
    ...(error !== undefined && { error }),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    ...stepUpParameters(stepUp),
    ...(metadata !== undefined && { resource_metadata: metadata }),
  }
  const list = Object.entries(parameters).map(([name, value]) => `${name}="${value.replaceAll(/["\\]/g, '\\$&')}"`)
  // A scheme needs a parameter here, because a bare one could be read as part of the next
  // challenge.
  return `Bearer ${list.length === 0 ? 'realm="access-token"' : list.join(', ')}`
}
