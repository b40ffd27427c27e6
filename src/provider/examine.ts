import * as client from 'openid-client'
import type { ProviderConfig, SignalsConfig } from '../config/model/provider.ts'
import { systemClock } from '../core/clock.ts'
import { GatewayError, printable, reason } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { randomToken, sha256 } from '../core/random.ts'
import type { Log } from '../observe/log.ts'
import { authorizationUrlFor, type RequestedAccess } from './authorization-request.ts'
import { ClaimsApi } from './claims-api.ts'
import { DpopProofs, newDpopKey } from './client-auth.ts'
import { ApiCredentials, requestClientToken, transmitterPurpose } from './client-credentials.ts'
import { issuerSchemeMismatch } from './discovery.ts'
import { discover, type DiscoveredProvider, type DiscoveryProblem, metadataUrl, problemOf } from './metadata.ts'
import { createOutbound, isResponseTimeout, type Outbound } from './outbound.ts'
import { gatewayErrorIn, isInvalidGrant } from './provider-errors.ts'
import { findStream, type Stream, StreamClient, TransmitterRefusal } from './stream-client.ts'
import { Transmitter, type TransmitterMetadata } from './transmitter.ts'

/** Why something cannot be used. Without a response, `problem` is only present for a timeout. */
export interface ProbeFailure {
  readonly why: string
  readonly problem?: DiscoveryProblem | 'timeout'
}

/** The result of a request and how long it took, or why there is no usable response. */
export type ProbeResult<T> = { readonly value: T; readonly ms: number } | ProbeFailure

/** What a provider reports, and how it treats this client. It contains no secrets. */
export interface ProviderFacts {
  /** The discovery document as it was received. */
  readonly metadata: ProbeResult<Readonly<Record<string, unknown>>>
  /** The correct setting, when the issuer has the wrong scheme. */
  readonly wrongScheme?: string
  /** The settings that the gateway derives from the metadata, or why it rejects the metadata. */
  readonly derived: { readonly algorithm: string; readonly access: RequestedAccess } | ProbeFailure
  /**
   * How far the clock of the provider is ahead, in ms, by `Date` in whole seconds (RFC 9110
   * §6.6.1).
   */
  readonly clockAheadMs?: number
  readonly keys?: ProbeResult<readonly Readonly<Record<string, unknown>>[]>
  readonly redirectUris: readonly RedirectUriFact[]
  /** Whether the provider accepts the client authentication, as tried with an invented code. */
  readonly client?: ClientFact
}

/** Whether the provider redirects a browser to this URI. */
export interface RedirectUriFact {
  readonly redirect_uri: string
  /** `unknown`: the response is a page, which does not show whether the URI is registered. */
  readonly outcome: 'sent_back' | 'refused' | 'unknown'
  /** The error in the redirect, or the status of the response. */
  readonly detail: string
}

/** `accepted`: the provider rejected the code and not the client. */
export interface ClientFact {
  readonly outcome: 'accepted' | 'refused' | 'unknown'
  readonly detail: string
}

/**
 * Examines a provider: its discovery document and keys, each redirect URI by an authorization
 * request with `prompt=none`, and the client by a token request with an invented code. Never
 * rejects, and takes at most three times `provider.timeout`.
 */
export async function examineProvider(config: ProviderConfig, redirectUris: readonly string[]): Promise<ProviderFacts> {
  const outbound = createOutbound(config)
  const clock = new ClockComparison()
  const timed: Outbound = { ...outbound, fetch: (url, options) => clock.watch(outbound.fetch(url, options)) }
  try {
    const [metadata, found] = await Promise.all([
      config.metadata === undefined
        ? readJson(metadataUrl(config.issuer), timed)
        : { value: { issuer: config.issuer, ...config.metadata }, ms: 0 },
      discoverProvider(config, timed),
    ])
    const ahead = () => (clock.aheadMs === undefined ? {} : { clockAheadMs: clock.aheadMs })
    if ('why' in found) {
      const wrongScheme = 'why' in metadata ? await issuerSchemeMismatch(config, metadata.why) : undefined
      return { metadata, derived: found, redirectUris: [], ...ahead(), ...(wrongScheme && { wrongScheme }) }
    }
    const [keys, clientFact, ...facts] = await Promise.all([
      config.oauth2 === undefined ? readKeys(found.jwks_uri, timed) : undefined,
      tryClient(found, config, redirectUris[0] ?? ''),
      ...redirectUris.map((uri) => tryRedirectUri(found, config, uri, timed)),
    ])
    return { metadata, derived: found, ...(keys && { keys }), client: clientFact, redirectUris: facts, ...ahead() }
  } finally {
    await outbound.close()
  }
}

async function discoverProvider(
  config: ProviderConfig,
  outbound: Outbound,
): Promise<DiscoveredProvider | ProbeFailure> {
  try {
    return await discover(config, outbound)
  } catch (error) {
    const problem = problemOf(error)
    return { why: gatewayErrorIn(error)?.message ?? reason(error), ...(problem && { problem }) }
  }
}

async function readJson(url: string, outbound: Outbound): Promise<ProbeResult<Readonly<Record<string, unknown>>>> {
  const began = performance.now()
  try {
    const response = await outbound.fetch(url, { headers: { accept: 'application/json' } })
    const ms = performance.now() - began
    if (response.status !== 200)
      return {
        why: `${url} returned status ${response.status}`,
        problem: response.status === 404 ? 'no_document' : 'metadata',
      }
    const value: unknown = await response.json().catch(() => undefined)
    if (!isObject(value)) return { why: `${url} did not return a JSON object`, problem: 'no_document' }
    return { value, ms }
  } catch (error) {
    return { why: reason(error), ...(isResponseTimeout(error) && { problem: 'timeout' }) }
  }
}

async function readKeys(url: string, outbound: Outbound): Promise<NonNullable<ProviderFacts['keys']>> {
  const response = await readJson(url, outbound)
  if ('why' in response) return response
  const { keys } = response.value
  if (!Array.isArray(keys)) return { why: `${url} did not return a JSON Web Key Set` }
  return { value: keys.filter(isObject), ms: response.ms }
}

async function tryRedirectUri(
  found: DiscoveredProvider,
  { resource }: ProviderConfig,
  redirect_uri: string,
  outbound: Outbound,
): Promise<RedirectUriFact> {
  const { scopes, params } = found.access
  const parameters = new URLSearchParams({
    ...params,
    response_type: 'code',
    scope: scopes.join(' '),
    redirect_uri,
    state: randomToken(16),
    nonce: randomToken(16),
    code_challenge: sha256(randomToken(32)),
    code_challenge_method: 'S256',
    // A browser without cookies has no session, so the provider redirects with an error (OpenID
    // Connect Core §3.1.2.6).
    prompt: 'none',
  })
  for (const uri of resource) parameters.append('resource', uri)
  try {
    const url = await authorizationUrlFor(found, parameters)
    const response = await outbound.fetch(url.href, { headers: { accept: 'text/html' } })
    const location = response.headers.get('location')
    const back = location !== null && URL.canParse(location) ? new URL(location) : undefined
    if (back !== undefined && `${back.origin}${back.pathname}` === redirect_uri)
      return { redirect_uri, outcome: 'sent_back', detail: shortened(back.searchParams.get('error') ?? 'no error') }
    const isRefused = response.status >= 400 && response.status < 500
    return { redirect_uri, outcome: isRefused ? 'refused' : 'unknown', detail: `status ${response.status}` }
  } catch (error) {
    return { redirect_uri, outcome: 'unknown', detail: reason(error) }
  }
}

/** A provider checks the client before the code (RFC 6749 §5.2), so the code can be invented. */
async function tryClient(
  { configuration }: DiscoveredProvider,
  { dpop }: ProviderConfig,
  redirect_uri: string,
): Promise<ClientFact> {
  const parameters = { code: randomToken(24), code_verifier: randomToken(32), redirect_uri }
  try {
    const proof = dpop ? { DPoP: await new DpopProofs().of(await newDpopKey(), configuration) } : {}
    await client.genericGrantRequest(configuration, 'authorization_code', parameters, proof)
    return { outcome: 'unknown', detail: 'it accepted an invented authorization code' }
  } catch (error) {
    const oauthCode = oauthError(error)
    if (oauthCode === undefined) return { outcome: 'unknown', detail: gatewayErrorIn(error)?.message ?? reason(error) }
    // GitHub has names of its own.
    const isRefused = ['invalid_client', 'unauthorized_client', 'incorrect_client_credentials'].includes(oauthCode)
    const isAccepted = isInvalidGrant(error)
    return { outcome: isRefused ? 'refused' : isAccepted ? 'accepted' : 'unknown', detail: oauthCode }
  }
}

/** The error code of the provider. Any 401 is about the client. */
function oauthError(error: unknown): string | undefined {
  if (error instanceof client.ResponseBodyError) return shortened(error.status === 401 ? 'invalid_client' : error.error)
  return error instanceof client.WWWAuthenticateChallengeError ? 'invalid_client' : undefined
}

/** Text of the provider, shortened to one line of a report. */
function shortened(text: string): string {
  return printable(text.slice(0, 100))
}

/** Compares the clocks by `Date`. The smallest difference counts: a cache may have responded. */
class ClockComparison {
  aheadMs: number | undefined

  async watch(pending: Promise<Response>): Promise<Response> {
    const began = Date.now()
    const response = await pending
    const date = Date.parse(response.headers.get('date') ?? '')
    const ageMs = Number(response.headers.get('age') ?? 0) * 1000
    if (Number.isFinite(date) && Number.isFinite(ageMs)) {
      // `Date` has whole seconds, so half a second is added.
      const ahead = date + ageMs + 500 - (began + Date.now()) / 2
      if (this.aheadMs === undefined || Math.abs(ahead) < Math.abs(this.aheadMs)) this.aheadMs = Math.round(ahead)
    }
    return response
  }
}

/** Whether an API of `claims_from` can be read. */
export interface ApiFact {
  readonly claim: string
  readonly url: string
  /** `untried`: that needs a person. `doubtful`: it may not be there. */
  readonly outcome: 'read' | 'untried' | 'doubtful' | 'failed'
  readonly why?: string
}

/** Reads each API that the gateway can ask about itself: by a token of its own, at one address. */
export async function examineApis(config: ProviderConfig): Promise<readonly ApiFact[]> {
  const outbound = createOutbound(config)
  try {
    const facts = config.claimsFrom.flatMap((claim) =>
      claim.sources.map(async (source): Promise<ApiFact> => {
        const about = { claim: claim.name, url: source.urlText }
        if (source.token === 'access_token') return { ...about, ...(await tryAddress(source, outbound)) }
        const clientToken = async (scopes: readonly string[]) =>
          requestClientToken((await discover(config, outbound)).configuration, scopes, 'an API (claims_from)')
        try {
          const { access_token } = await clientToken(source.scopes)
          if (source.url.length > 1) return { ...about, ...(await tryAddress(source, outbound)) }
          let why: string | undefined
          const warn: Log['warn'] = (_event, fields) => void (why = String(fields?.['reason']))
          const parts = { outbound, clientToken, clock: systemClock, log: { ...silent, warn } }
          const subject = { sub: '', access_token, claims: {} }
          await new ClaimsApi({ ...parts, timeoutMs: config.timeoutMs }).read(
            [{ ...claim, sources: [source] }],
            subject,
          )
          return { ...about, outcome: why === undefined ? 'read' : 'failed', ...(why !== undefined && { why }) }
        } catch (error) {
          return { ...about, outcome: 'failed', why: reason(error) }
        }
      }),
    )
    return await Promise.all(facts)
  } finally {
    await outbound.close()
  }
}

/** Whether something responds at the address of an API, without a token and without a person. */
async function tryAddress(
  { url, origin }: ProviderConfig['claimsFrom'][number]['sources'][number],
  outbound: Outbound,
): Promise<Pick<ApiFact, 'outcome' | 'why'>> {
  const [first] = url
  const isWhole = url.length === 1 && typeof first === 'string'
  try {
    const response = await outbound.fetch(isWhole ? first : origin, { headers: { accept: 'application/json' } })
    await response.body?.cancel()
    const { status } = response
    const why = `${isWhole ? '' : 'its host '}responds with status ${status} without a token`
    return { outcome: isWhole && (status === 404 || status === 410 || status >= 500) ? 'doubtful' : 'untried', why }
  } catch (error) {
    return { outcome: 'failed', why: reason(error) }
  }
}

/** The keys of an issuer of `claim_sources`. */
export interface ClaimSourceFact {
  readonly issuer: string
  readonly keys: NonNullable<ProviderFacts['keys']>
}

/** Reads the keys of each issuer of `claim_sources`. Never rejects. */
export async function examineClaimSources(config: ProviderConfig): Promise<readonly ClaimSourceFact[]> {
  const outbound = createOutbound(config)
  try {
    return await Promise.all(
      config.claimSources.map(async ({ issuer, jwks_uri }) => ({ issuer, keys: await readKeys(jwks_uri, outbound) })),
    )
  } finally {
    await outbound.close()
  }
}

type Keys = readonly Readonly<Record<string, unknown>>[]

/** What the transmitter of security events reports, and how it treats this receiver. */
export interface TransmitterFacts {
  readonly metadata: TransmitterMetadata | ProbeFailure
  readonly keys?: Keys | ProbeFailure
  /** With its status, if the transmitter says it. Absent without requests about streams. */
  readonly stream?: (Stream & { readonly status: string | undefined }) | 'none' | StreamFailure
  /** Whether the events of an existing stream can be polled. */
  readonly poll?: 'accepted' | StreamFailure
}

/** `isRefused`: the transmitter does not accept the credentials, or their rights. */
export interface StreamFailure extends ProbeFailure {
  readonly isRefused: boolean
}

/**
 * Examines the transmitter of security events, and takes no event: a poll with `maxEvents: 0` shows
 * whether it is accepted (RFC 8936 §2.2). Never rejects.
 */
export async function examineTransmitter(
  config: ProviderConfig & { readonly signals: SignalsConfig },
  receiverUrl: string,
): Promise<TransmitterFacts> {
  const { signals } = config
  const outbound = createOutbound(config)
  try {
    const transmitter = new Transmitter(signals, { outbound, clock: systemClock, log: silent })
    const metadata = await transmitter.metadata().catch(failure)
    if ('why' in metadata) return { metadata }
    const keys = await readKeys(metadata.jwks_uri, outbound)
    const facts = { metadata, keys: 'why' in keys ? keys : keys.value }
    if (signals.authorization === undefined) return facts
    const credentials = new ApiCredentials(signals.authorization, {
      clientToken: async (scopes) =>
        requestClientToken((await discover(config, outbound)).configuration, scopes, transmitterPurpose),
      clock: systemClock,
    })
    const streams = new StreamClient({ transmitter, credentials, outbound })
    if (signals.stream === 'managed') return { ...facts, stream: await readOwn(streams, receiverUrl) }
    return { ...facts, poll: await tryPoll(streams, signals.pollUrl ?? '', config.timeoutMs) }
  } finally {
    await outbound.close()
  }
}

async function readOwn(streams: StreamClient, receiverUrl: string): Promise<NonNullable<TransmitterFacts['stream']>> {
  try {
    const found = findStream(await streams.streams(), { receiverUrl })
    return found === undefined ? 'none' : { ...found, status: await streams.status(found.stream_id) }
  } catch (error) {
    return streamFailure(error)
  }
}

async function tryPoll(streams: StreamClient, url: string, timeoutMs: number): Promise<'accepted' | StreamFailure> {
  try {
    const { signal } = new AbortController()
    const response = await streams.poll(url, { maxEvents: 0, returnImmediately: true }, { timeoutMs, signal })
    return response === undefined ? { why: `no response within ${timeoutMs} ms`, isRefused: false } : 'accepted'
  } catch (error) {
    return streamFailure(error)
  }
}

function failure(error: unknown): ProbeFailure {
  return { why: error instanceof GatewayError ? error.message : reason(error) }
}

function streamFailure(error: unknown): StreamFailure {
  const isRefused = error instanceof TransmitterRefusal && [401, 403].includes(error.statusOfResponse)
  return { ...failure(error), isRefused }
}

const nothing = () => {}
const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing, announce: nothing }
