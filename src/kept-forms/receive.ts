import type { UpstreamConfig } from '../config/model/upstream.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { SubTag } from '../core/names.ts'
import type { ClientMessage, ClientReply } from '../http/client-messages.ts'
import { hasBody, RequestBody } from '../http/request-body.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { isFromSite, originsAt } from '../http/requesting-page.ts'
import { withoutParameters } from '../observe/request-record.ts'
import type { NotKept } from '../pages/messages/messages.ts'
import type { Kept, KeptRequests, KeptWriter } from './kept-requests.ts'
import { isContentField, type KeptParts } from './send.ts'

/** A form of a browser without a session, or one that met the sign-in of an application. */
export interface ReceivedForm {
  readonly req: ClientMessage
  readonly res: ClientReply
  readonly facts: RequestFacts
  readonly upstream: UpstreamConfig
  /** The page that the form was on; `undefined` when it is unknown. */
  readonly returnTo: string | undefined
  readonly requestId: string
}

export interface ReceiveParts extends Pick<KeptParts, 'kept' | 'personCookie' | 'log'> {
  /** How long the client may pause, in ms, and how fast it has to send: see `RequestBody`. */
  readonly idleTimeoutMs: number
  readonly bytesPerSecond: number
}

/** The size of the parts that are stored, in bytes. The last one is smaller. */
const partBytes = 64 * 1024
/** How long the whole content may take to arrive, in ms. */
const arrivalMs = 5 * 60_000
/** How long the store may take for one part, in ms. */
const storingMs = 60_000

const keptTypes =
  /^(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain|application\/json)\s*(?:;|$)/i

/**
 * Keeps a form, with bounded memory: its content goes to the store as it arrives.
 * @returns the kept request; or why it is not kept
 * @throws {GatewayError} `ERR_REQUEST_TIMEOUT` when the client sends too slowly, or closes the
 * connection before the end. Nothing is kept then.
 */
export async function receiveForm(form: ReceivedForm, parts: ReceiveParts): Promise<Kept | NotKept> {
  const outcome = await keep(form, parts)
  const { requestId: request, upstream, facts } = form
  const fields = { request, upstream: upstream.name, method: facts.method, path: withoutParameters(facts.target.path) }
  if (typeof outcome === 'object') parts.log.info('kept_request.kept', fields)
  else if (outcome === 'unavailable' || outcome === 'full')
    parts.log.warn('kept_request.not_kept', { ...fields, reason: outcome })
  else parts.log.info('kept_request.not_kept', { ...fields, reason: outcome })
  parts.kept.count(typeof outcome === 'object' ? 'kept' : 'not_kept')
  return outcome
}

/** Whether the content of a form may be kept. */
export function mayKeep(
  { headers }: Pick<ClientMessage, 'headers'>,
  { maxSizeBytes }: Pick<KeptRequests, 'maxSizeBytes'>,
): boolean {
  const length = Number(headers['content-length'] ?? Number.NaN)
  return length > 0 && length <= maxSizeBytes && keptTypes.test(headers['content-type'] ?? '')
}

/**
 * Reads a form that {@link mayKeep} into memory.
 * @throws {GatewayError} `ERR_REQUEST_TIMEOUT`
 */
export async function readForm(
  form: Pick<ReceivedForm, 'req' | 'res'>,
  parts: Omit<ReceiveParts, 'personCookie' | 'log'>,
): Promise<readonly Buffer[]> {
  const content: Buffer[] = []
  await readInto({ append: async (part) => void content.push(part) }, form, parts)
  return content
}

/**
 * Keeps a form that was read into memory, for a signed-in person.
 * @param rawHeaders the fields of its request
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function keepForm(
  form: ReceivedForm,
  content: { readonly rawHeaders: readonly string[]; readonly parts: readonly Buffer[] },
  { kept, person }: { readonly kept: KeptRequests; readonly person: SubTag },
): Promise<Kept | NotKept> {
  const writer = await kept.begin(person, storingMs)
  if (typeof writer === 'string') return writer
  let outcome: Kept | NotKept | undefined
  for (const part of content.parts) {
    outcome = await writer.append(part)
    if (outcome !== undefined) break
  }
  outcome ??= await writer.complete(describe(form, content.rawHeaders))
  // If this fails, the store deletes the parts when they expire.
  if (typeof outcome === 'string') await writer.drop().catch(() => {})
  return outcome
}

async function keep(form: ReceivedForm, parts: ReceiveParts): Promise<Kept | NotKept> {
  const { req, facts, upstream } = form
  const { kept, personCookie } = parts
  if (!kept.isOn) return 'off'
  if (!isFromSite('kept_form', facts, originsAt(upstream.externalUrl, facts.forwarded.host))) return 'cross_site'
  const contentType = req.headers['content-type'] ?? ''
  if (hasBody(req) && !keptTypes.test(contentType)) return 'content_type'
  if (Number(req.headers['content-length'] ?? 0) > kept.maxSizeBytes) return 'too_large'
  const person = personCookie.read(facts.cookie)
  if (person === undefined) return 'unknown_person'

  let writer: KeptWriter | undefined
  try {
    const begun = await kept.begin(person, parts.idleTimeoutMs + storingMs)
    if (typeof begun === 'string') return begun
    writer = begun
    // After the client has closed the connection, the request emits neither data nor its end.
    if (form.res.destroyed) throw gone()
    const outcome = (await readInto(writer, form, parts)) ?? (await writer.complete(describe(form, req.rawHeaders)))
    if (typeof outcome === 'object' && !form.res.destroyed) return outcome
    await writer.drop()
    return outcome
  } catch (error) {
    // If this fails, the store deletes the parts when they expire.
    await writer?.drop().catch(() => {})
    if (!(error instanceof GatewayError) || error.code !== 'ERR_STORE_UNAVAILABLE') throw error
    parts.log.debug('kept_request.store_failed', { reason: reason(error), request: form.requestId })
    return 'unavailable'
  }
}

function describe({ facts, upstream, returnTo }: ReceivedForm, rawHeaders: readonly string[]) {
  const fields: string[] = []
  let contentType = ''
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
    if (name.toLowerCase() === 'content-type') contentType = value
    if (isContentField(name) && !/^(?:content-length|transfer-encoding|trailer)$/i.test(name)) fields.push(name, value)
  }
  const target = facts.target.path + facts.target.query
  return { upstream: upstream.name, host: facts.host, target, returnTo, fields, contentType }
}

/**
 * Writes the content of the request to the store.
 * @returns why it cannot be kept; `undefined` when it is written
 */
async function readInto(
  writer: Pick<KeptWriter, 'append'>,
  form: Pick<ReceivedForm, 'req' | 'res'>,
  parts: Omit<ReceiveParts, 'personCookie' | 'log'>,
): Promise<NotKept | undefined> {
  const { req, res } = form
  if (!hasBody(req)) return undefined
  const { kept, idleTimeoutMs, bytesPerSecond } = parts
  const stalled = () => body.destroy(new GatewayError('ERR_REQUEST_TIMEOUT', 'the content did not arrive in time'))
  const left = () => body.destroy(gone())
  const input = { req, res, idleTimeoutMs, bytesPerSecond, onStall: stalled, onPart: () => {} }
  const body = new RequestBody(input).asStream()
  const timer = setTimeout(stalled, arrivalMs)
  res.once('close', left)
  try {
    let [waiting, size, total]: [Buffer[], number, number] = [[], 0, 0]
    const flush = async () => {
      const part = Buffer.concat(waiting)
      waiting = []
      size = 0
      return part.length === 0 ? undefined : writer.append(part)
    }
    for await (const chunk of body as AsyncIterable<Buffer>) {
      total += chunk.length
      if (total > kept.maxSizeBytes) return 'too_large'
      waiting.push(chunk)
      size += chunk.length
      const failed = size < partBytes ? undefined : await flush()
      if (failed !== undefined) return failed
    }
    return await flush()
  } finally {
    clearTimeout(timer)
    res.off('close', left)
  }
}

function gone(): GatewayError {
  return new GatewayError('ERR_REQUEST_TIMEOUT', 'the client has closed the connection')
}
