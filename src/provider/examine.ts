import * as client from 'openid-client'
import type { ProviderConfig } from '../config/model.ts'
import { reason } from '../core/errors.ts'
import { printable } from '../core/printable.ts'
import { randomToken, sha256 } from '../core/random.ts'
import { discover, issuerSchemeMismatch, metadataUrl, type DiscoveredProvider } from './discovery.ts'
import { createOutbound, type Outbound } from './outbound.ts'
import { gatewayErrorIn } from './provider-errors.ts'
import type { RequestedAccess } from './requested-access.ts'

/** What was answered, and after how long; or why there was no answer that can be used. */
export type Answered<T> = { readonly value: T; readonly ms: number } | { readonly why: string }

/** What a provider says of itself, and how it takes its client. Nothing of it is a secret. */
export interface ProviderFacts {
  /** The discovery document as it came. */
  readonly metadata: Answered<Readonly<Record<string, unknown>>>
  /**
   * When there is no answer: that the port of the issuer speaks something else than its scheme
   * says.
   */
  readonly wrongScheme?: string
  /** What the gateway makes of it; or why it does not take it. */
  readonly taken: { readonly algorithm: string; readonly access: RequestedAccess } | { readonly why: string }
  /**
   * How far the provider's clock is ahead of ours, in ms: `Date` has whole seconds (RFC 9110
   * §6.6.1). Absent: it sends none.
   */
  readonly clockAheadMs?: number
  readonly keys?: Answered<readonly Readonly<Record<string, unknown>>[]>
  readonly redirectUris: readonly RedirectUriFact[]
  /**
   * How the provider took the client's authentication, with an authorization code that nobody ever
   * had.
   */
  readonly client?: ClientFact
}

/** Whether the provider sends a browser back to this address. */
export interface RedirectUriFact {
  readonly redirect_uri: string
  /** `unknown`: it answered with a page of its own that says neither. */
  readonly outcome: 'sent_back' | 'refused' | 'unknown'
  /** The error that it sent the browser back with, or the status of its refusal. */
  readonly detail: string
}

/** `accepted`: it refused the code and not the client. */
export interface ClientFact {
  readonly outcome: 'accepted' | 'refused' | 'unknown'
  readonly detail: string
}

/**
 * Asks a provider what it is, and what it thinks of this client: the discovery document and the key
 * set, an authorization request with `prompt=none` for each redirect URI, as a browser without a
 * session would make it, and a token request with a made-up code. Never rejects; takes three times
 * `provider.timeout` at most.
 */
export async function examineProvider(config: ProviderConfig, redirectUris: readonly string[]): Promise<ProviderFacts> {
  const outbound = createOutbound(config)
  const clock = new ClockComparison()
  const timed: Outbound = { ...outbound, fetch: (url, options) => clock.watch(outbound.fetch(url, options)) }
  try {
    const [metadata, found] = await Promise.all([readJson(metadataUrl(config.issuer), timed), taken(config, timed)])
    const ahead = () => (clock.aheadMs === undefined ? {} : { clockAheadMs: clock.aheadMs })
    if ('why' in found) {
      const wrongScheme = 'why' in metadata ? await issuerSchemeMismatch(config.issuer, metadata.why) : undefined
      return { metadata, taken: found, redirectUris: [], ...ahead(), ...(wrongScheme && { wrongScheme }) }
    }
    const [keys, clientFact, ...facts] = await Promise.all([
      readKeys(found.jwks_uri, timed),
      tryClient(found, redirectUris[0] ?? ''),
      ...redirectUris.map((uri) => tryRedirectUri(found, uri, timed)),
    ])
    return { metadata, taken: found, keys, client: clientFact, redirectUris: facts, ...ahead() }
  } finally {
    await outbound.close()
  }
}

async function taken(
  config: ProviderConfig,
  outbound: Outbound,
): Promise<DiscoveredProvider | { readonly why: string }> {
  try {
    return await discover(config, outbound)
  } catch (error) {
    return { why: gatewayErrorIn(error)?.message ?? reason(error) }
  }
}

async function readJson(url: string, outbound: Outbound): Promise<Answered<Readonly<Record<string, unknown>>>> {
  const began = performance.now()
  try {
    const answer = await outbound.fetch(url, { headers: { accept: 'application/json' } })
    const ms = performance.now() - began
    if (answer.status !== 200) return { why: `${url} answered with status ${answer.status}` }
    const value: unknown = await answer.json().catch(() => undefined)
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return { why: `${url} did not answer with a JSON object` }
    return { value: value as Record<string, unknown>, ms }
  } catch (error) {
    return { why: reason(error) }
  }
}

async function readKeys(url: string, outbound: Outbound): Promise<NonNullable<ProviderFacts['keys']>> {
  const answer = await readJson(url, outbound)
  if ('why' in answer) return answer
  const { keys } = answer.value
  if (!Array.isArray(keys)) return { why: `${url} did not answer with a JSON Web Key Set` }
  const isObject = (key: unknown): key is Record<string, unknown> => typeof key === 'object' && key !== null
  return { value: keys.filter(isObject), ms: answer.ms }
}

async function tryRedirectUri(
  { configuration, access: { scopes, params } }: DiscoveredProvider,
  redirect_uri: string,
  outbound: Outbound,
): Promise<RedirectUriFact> {
  const url = client.buildAuthorizationUrl(configuration, {
    ...params,
    response_type: 'code',
    scope: scopes.join(' '),
    redirect_uri,
    state: randomToken(16),
    nonce: randomToken(16),
    code_challenge: sha256(randomToken(32)),
    code_challenge_method: 'S256',
    // Nobody is signed in in a browser that has no cookies: OpenID Connect Core §3.1.2.6 sends it
    // back with an error.
    prompt: 'none',
  })
  try {
    const answer = await outbound.fetch(url.href, { headers: { accept: 'text/html' } })
    const location = answer.headers.get('location')
    const back = location !== null && URL.canParse(location) ? new URL(location) : undefined
    if (back !== undefined && `${back.origin}${back.pathname}` === redirect_uri)
      return { redirect_uri, outcome: 'sent_back', detail: shortened(back.searchParams.get('error') ?? 'no error') }
    const isRefused = answer.status >= 400 && answer.status < 500
    return { redirect_uri, outcome: isRefused ? 'refused' : 'unknown', detail: `status ${answer.status}` }
  } catch (error) {
    return { redirect_uri, outcome: 'unknown', detail: reason(error) }
  }
}

/**
 * A client that is not known, or not believed, is refused before its code is looked at (RFC 6749
 * §5.2).
 */
async function tryClient({ configuration }: DiscoveredProvider, redirect_uri: string): Promise<ClientFact> {
  const parameters = { code: randomToken(24), code_verifier: randomToken(32), redirect_uri }
  try {
    await client.genericGrantRequest(configuration, 'authorization_code', parameters)
    return { outcome: 'unknown', detail: 'it took a made-up authorization code' }
  } catch (error) {
    const told = oauthError(error)
    if (told === undefined) return { outcome: 'unknown', detail: gatewayErrorIn(error)?.message ?? reason(error) }
    const isRefused = told === 'invalid_client' || told === 'unauthorized_client'
    return { outcome: isRefused ? 'refused' : told === 'invalid_grant' ? 'accepted' : 'unknown', detail: told }
  }
}

/** The provider's own word for what is wrong; 401 is about the client whatever else it says. */
function oauthError(error: unknown): string | undefined {
  if (error instanceof client.ResponseBodyError) return shortened(error.status === 401 ? 'invalid_client' : error.error)
  return error instanceof client.WWWAuthenticateChallengeError ? 'invalid_client' : undefined
}

/** Of what somebody else wrote, as much as a line of a report holds. */
function shortened(text: string): string {
  return printable(text.slice(0, 100))
}

/**
 * Compares clocks by the `Date` of answers: the smallest difference, for some answers come out of a
 * cache.
 */
class ClockComparison {
  aheadMs: number | undefined

  async watch(answering: Promise<Response>): Promise<Response> {
    const began = Date.now()
    const answer = await answering
    const date = Date.parse(answer.headers.get('date') ?? '')
    const ageMs = Number(answer.headers.get('age') ?? 0) * 1000
    if (Number.isFinite(date) && Number.isFinite(ageMs)) {
      // The second that it names may have just begun, or be nearly over.
      const ahead = date + ageMs + 500 - (began + Date.now()) / 2
      if (this.aheadMs === undefined || Math.abs(ahead) < Math.abs(this.aheadMs)) this.aheadMs = Math.round(ahead)
    }
    return answer
  }
}
