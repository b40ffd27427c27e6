// Claims from APIs of the provider (`claims_from`).
import { setTimeout as wait } from 'node:timers/promises'
import type { ApiClaimConfig, ClaimSourceConfig } from '../config/model/provider.ts'
import {
  type ApiReading,
  type Claims,
  type ClaimTemplate,
  isExactScalar,
  type JsonValue,
  readClaim,
  selectsOne,
  selectValues,
} from '../core/claims.ts'
import type { Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { retryAfterMs, waitUntil } from '../core/repeating.ts'
import type { Log } from '../observe/log.ts'
import { ApiCredentials, type ClientToken } from './client-credentials.ts'
import type { Outbound } from './outbound.ts'

/** The largest result of an API. More is refused, because a part of a list would be wrong. */
const maxPages = 50
const maxValues = 2_000
/** Of all values together, in characters: they are sealed into the session. */
const maxCharacters = 100_000
/** The pages of a source may take this many times `provider.timeout`. */
const maxTimeouts = 2

/** The least wait until an API is asked again, in ms, also when it asks for less. */
const leastWaitMs = 1_000

/** Whose claims are read. */
export interface ApiSubject {
  readonly sub: string
  readonly access_token: string
  /** Those that addresses may contain. */
  readonly claims: Claims
  /** A sign-in waits for the claims, so an API that asks to wait for a moment is asked again. */
  readonly isWaiting?: boolean
}

export interface ClaimsApiParts {
  readonly outbound: Pick<Outbound, 'fetch'>
  readonly clientToken: (scopes: readonly string[]) => Promise<ClientToken>
  readonly clock: Clock
  readonly log: Log
  readonly timeoutMs: number
}

/** Why a source cannot be read. */
class ReadingError extends Error {
  readonly reading: Exclude<ApiReading, { kind: 'value' }>

  constructor(why: string, reading: ReadingError['reading'] = { kind: 'unusable', isRejected: false }) {
    super(why)
    this.reading = reading
  }
}

interface Page {
  readonly values: readonly JsonValue[]
  /** The address of the next page. */
  readonly next: string | undefined
}

/** Reads claims from the APIs of `claims_from`. Never rejects: what cannot be read is logged. */
export class ClaimsApi {
  readonly #parts: ClaimsApiParts
  /** By their scopes. */
  readonly #credentials = new Map<string, ApiCredentials>()

  constructor(parts: ClaimsApiParts) {
    this.#parts = parts
  }

  /** The readings, by the ID of their claim. */
  async read(claims: readonly ApiClaimConfig[], subject: ApiSubject): Promise<ReadonlyMap<string, ApiReading>> {
    const readings = await Promise.all(
      claims.map(async (claim) => [claim.id, await this.#readClaim(claim, subject)] as const),
    )
    return new Map(readings)
  }

  async #readClaim({ name, sources, isMerged }: ApiClaimConfig, subject: ApiSubject): Promise<ApiReading> {
    const readings = await Promise.all(sources.map((source) => this.#readSource(name, source, subject)))
    const failed = readings.filter((reading) => reading.kind !== 'value')
    const [first] = failed.toSorted((one, other) => severity(other) - severity(one))
    if (first !== undefined) return first
    const values = readings.flatMap((reading) => (reading.kind === 'value' ? [reading.value ?? []].flat() : []))
    const [only] = sources
    const isOne =
      sources.length === 1 && !isMerged && only !== undefined && selectsOne(only.select) && values.length < 2
    return { kind: 'value', value: isOne ? values[0] : [...new Set(values)] }
  }

  async #readSource(claim: string, source: ClaimSourceConfig, subject: ApiSubject): Promise<ApiReading> {
    try {
      return { kind: 'value', value: await this.#readPages(source, subject) }
    } catch (error) {
      const reading = error instanceof ReadingError ? error.reading : readingOf(error)
      this.#parts.log.warn('provider.claims_api_failed', {
        claim,
        url: source.urlText,
        reason: reason(error),
        ...(reading.kind === 'unusable' && {
          hint: 'Check the entry in provider.claims_from, and the rights of its token.',
        }),
      })
      return reading
    }
  }

  async #readPages(source: ClaimSourceConfig, subject: ApiSubject): Promise<readonly JsonValue[]> {
    const { clock, timeoutMs } = this.#parts
    const until = clock.now() + maxTimeouts * timeoutMs
    const patience = { leftMs: subject.isWaiting === true ? maxTimeouts * timeoutMs : 0 }
    const values: JsonValue[] = []
    const seen = new Set<string>()
    for (let url: string | undefined = addressOf(source.url, subject.claims); url !== undefined;) {
      if (seen.has(url)) throw new ReadingError('a page names itself or an earlier one as the next')
      if (seen.size === maxPages) throw new ReadingError(`there are more than ${maxPages} pages`)
      if (clock.now() > until)
        throw new ReadingError('the pages take too long', { kind: 'unavailable', retryAfterMs: undefined })
      seen.add(url)
      const page = await this.#readPatiently(url, source, subject, patience)
      if (page.values.length > 0 && values.length > 0 && source.select.elements && selectsOne(source.select))
        throw new ReadingError(`several pages have a value at ${source.selectText}`)
      values.push(...page.values)
      checkSize(values)
      url = page.next
    }
    return values
  }

  /** Reads a page again after the wait that the API asks for, while there is patience left. */
  async #readPatiently(
    url: string,
    source: ClaimSourceConfig,
    subject: ApiSubject,
    patience: { leftMs: number },
  ): Promise<Page> {
    for (;;) {
      try {
        return await this.#readPage(url, source, subject)
      } catch (error) {
        const waitMs = waitOf(error)
        if (waitMs === undefined || waitMs > patience.leftMs) throw error
        patience.leftMs -= waitMs
        await wait(waitMs)
      }
    }
  }

  async #readPage(url: string, source: ClaimSourceConfig, subject: ApiSubject): Promise<Page> {
    const response = await this.#fetch(url, source, subject)
    const content = await jsonOf(response)
    // OpenID Connect Core §5.3.2, for APIs that name the person as UserInfo does.
    if (isObject(content) && 'sub' in content && content['sub'] !== subject.sub)
      throw new ReadingError('the response is about another person')
    return { values: valuesOf(content, source), next: nextPage(response, content, url, source) }
  }

  /** A rejected token of the client itself is replaced once. */
  async #fetch(url: string, source: ClaimSourceConfig, { access_token }: ApiSubject): Promise<Response> {
    const credentials = source.token === 'client_credentials' ? this.#credentialsFor(source.scopes) : undefined
    const authorization = (await credentials?.value()) ?? `Bearer ${access_token}`
    const response = await this.#send(url, authorization)
    if (response.status !== 401 || credentials === undefined) return acceptable(response)
    credentials.reject(authorization)
    return acceptable(await this.#send(url, await credentials.value()))
  }

  #send(url: string, authorization: string): Promise<Response> {
    return this.#parts.outbound.fetch(url, { headers: bearerHeaders(authorization) })
  }

  #credentialsFor(scopes: readonly string[]): ApiCredentials {
    const key = scopes.join(' ')
    const known = this.#credentials.get(key)
    if (known !== undefined) return known
    const { clientToken, clock } = this.#parts
    const created = new ApiCredentials({ kind: 'client_credentials', scopes }, { clientToken, clock })
    this.#credentials.set(key, created)
    return created
  }
}

/** The header fields of a request to an API. GitHub refuses requests without User-Agent. */
export function bearerHeaders(authorization: string): Readonly<Record<string, string>> {
  return { accept: 'application/json', authorization, 'user-agent': 'gatehouse' }
}

/** A claim with several sources has the worst of their readings. */
function severity(reading: ApiReading): number {
  return reading.kind === 'unusable' ? (reading.isRejected ? 2 : 3) : 1
}

/** The reading of an error of the request: without a response in time, the API is unavailable. */
function readingOf(error: unknown): Exclude<ApiReading, { kind: 'value' }> {
  const isTooLong = reason(error).includes('UND_ERR_RES_EXCEEDED_MAX_SIZE')
  const isUnavailable = !isTooLong && (error as { code?: unknown }).code === 'ERR_PROVIDER_UNAVAILABLE'
  return isUnavailable ? { kind: 'unavailable', retryAfterMs: undefined } : { kind: 'unusable', isRejected: false }
}

/** How long an API has asked to wait, in ms. */
function waitOf(error: unknown): number | undefined {
  const reading = error instanceof ReadingError ? error.reading : undefined
  return reading?.kind === 'unavailable' && reading.retryAfterMs !== undefined
    ? Math.max(reading.retryAfterMs, leastWaitMs)
    : undefined
}

/** A response with a page. */
function acceptable(response: Response): Response {
  const { status } = response
  if (status === 200) return response
  const why = `the API responded with status ${status}`
  const unavailability = unavailabilityOf(response)
  if (unavailability !== undefined) throw new ReadingError(why, { kind: 'unavailable', ...unavailability })
  throw new ReadingError(why, { kind: 'unusable', isRejected: status === 401 })
}

/**
 * Whether an API is unavailable for some time, and for how long. A client that sends too much gets
 * 429 (RFC 6585 §4); GitHub sends 403 instead. Okta and GitHub name the time at which more is
 * allowed.
 */
export function unavailabilityOf({
  status,
  headers,
}: Pick<Response, 'status' | 'headers'>): { readonly retryAfterMs: number | undefined } | undefined {
  const first = (...names: readonly string[]) => names.map((name) => headers.get(name)).find((value) => value !== null)
  const isUsedUp = first('x-ratelimit-remaining', 'x-rate-limit-remaining') === '0'
  const reset = isUsedUp ? first('x-ratelimit-reset', 'x-rate-limit-reset') : undefined
  const date = headers.get('date')
  const resetMs = reset !== undefined && /^\d{1,12}$/.test(reset) ? waitUntil(Number(reset) * 1000, date) : undefined
  const waitMs = retryAfterMs(headers.get('retry-after'), date) ?? resetMs
  const isUnavailable = status >= 500 || status === 429 || (status === 403 && waitMs !== undefined)
  return isUnavailable ? { retryAfterMs: waitMs } : undefined
}

async function jsonOf(response: Response): Promise<JsonValue> {
  const type = response.headers.get('content-type') ?? ''
  if (!/^application\/(?:[\w.-]+\+)?json\b/i.test(type)) throw new ReadingError('the response is not JSON')
  try {
    return (await response.json()) as JsonValue
  } catch (error) {
    // A parser quotes what it cannot read.
    throw error instanceof SyntaxError ? new ReadingError('the response is not JSON, or is incomplete') : error
  }
}

function valuesOf(page: JsonValue, { select, selectText, absentIsEmpty }: ClaimSourceConfig): readonly JsonValue[] {
  if (absentIsEmpty && isObject(page) && (readClaim(page as Claims, select.path) ?? null) === null) return []
  const values = selectValues(page, select)
  if (values === undefined)
    throw new ReadingError(`the response has no value at ${selectText}, or several elements where one is expected`)
  if (!values.every(isExactScalar))
    throw new ReadingError(`the response has a value at ${selectText} that is no text, number, true or false`)
  return values
}

function checkSize(values: readonly JsonValue[]): void {
  if (values.length > maxValues) throw new ReadingError(`there are more than ${maxValues} values`)
  if (values.reduce((sum: number, value) => sum + String(value).length, 0) > maxCharacters)
    throw new ReadingError(`the values have more than ${maxCharacters} characters`)
}

/** The members by which known APIs name a further page. */
const nextMembers = ['@odata.nextLink', 'nextPageToken', 'next_page_token']

/** The address of the next page. */
function nextPage(
  response: Response,
  page: JsonValue,
  url: string,
  { pages, origin }: ClaimSourceConfig,
): string | undefined {
  const members = isObject(page) ? (page as Claims) : {}
  const link = linkToNext(response.headers.get('link') ?? '')
  const next = pages?.kind === 'link' ? link : pages && readClaim(members, pages.path)
  if (pages === undefined || next === undefined || next === null || next === '') {
    if (link !== undefined || nextMembers.some((name) => (members[name] ?? '') !== ''))
      throw new ReadingError('the response has further pages, to which pages does not lead')
    return undefined
  }
  if (typeof next !== 'string') throw new ReadingError('the next page is named by another value than text')
  const address = URL.parse(pages.kind === 'parameter' ? url : next, url)
  if (pages.kind === 'parameter') address?.searchParams.set(pages.parameter, next)
  // The token must not be sent elsewhere.
  if (address === null || address.origin !== origin) throw new ReadingError('the next page is at another origin')
  return address.href
}

/** The target of the link with the relation `next` (RFC 8288 §3). */
function linkToNext(field: string): string | undefined {
  for (const [, target, parameters = ''] of field.matchAll(/<([^<>]*)>((?:[^",<]|"(?:[^"\\]|\\.)*")*)/g)) {
    const [, quoted, plain] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters) ?? []
    if ((quoted ?? plain ?? '').toLowerCase().split(/\s+/).includes('next')) return target
  }
  return undefined
}

/** Characters that end a text in the query languages of APIs. */
const quotes = /["'\\\p{Cc}]/u

/**
 * Characters with which a value is not one segment of a path for each server: some decode a path
 * before they divide it, and some decode it twice.
 */
const separators = /[/%?#;]/

/** The address with the claims of the person. */
function addressOf(template: ClaimTemplate, claims: Claims): string {
  let isPath = true
  const text = template.map((part) => {
    if (typeof part === 'string') {
      isPath &&= !part.includes('?')
      return part
    }
    const value = readClaim(claims, part)
    const isUsable = (typeof value === 'string' && value.isWellFormed()) || Number.isSafeInteger(value)
    if (!isUsable || value === '') throw new ReadingError(`the person has no claim ${String(part[0])} for url`)
    const isDotSegment = /^[.\s]+$/.test(String(value))
    if (quotes.test(String(value)) || isDotSegment || (isPath && separators.test(String(value))))
      throw new ReadingError(`the claim ${String(part[0])} has characters that url must not contain`)
    return encodeURIComponent(String(value))
  })
  return new URL(text.join('')).href
}
