import { createReadStream } from 'node:fs'
import { placeText, type Place, type Sources } from '../config/document/diagnostics.ts'
import { explainFileError } from '../config/document/files.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { presetAsYaml, presets } from '../config/presets.ts'
import { ipAddress } from '../core/addresses.ts'
import { systemClock } from '../core/clock.ts'
import { OperatorError, printable } from '../core/errors.ts'
import { type Decision, explain, type Explanation } from '../explain/decision.ts'
import { adviceOn, LogStory, type Story } from '../explain/log-story.ts'
import type { SuppliedRequest } from '../explain/request.ts'
import { personWith } from '../explain/trial.ts'
import type { UpstreamRequest } from '../explain/upstream-request.ts'
import {
  CallFault,
  type CommandInput,
  configOption,
  formatOption,
  isJson,
  jsonText,
  reader,
  readOptions,
  takeNone,
  type Terminal,
  type ValuesOf,
} from './command.ts'
import { displayName, readClaims, readLines } from './given-file.ts'
import { loadAndReport } from './load.ts'
import { type Paint, withoutColors } from './paint.ts'

/** A request to explain. */
interface RequestTask {
  /** A file with claims, or `-` for standard input. Absent: the request has no session. */
  readonly as: string | undefined
  readonly method: string
  readonly url: string
  /** `Name: value`, as they were given. */
  readonly headers: readonly string[]
  readonly peer: string | undefined
  /** When the request arrives, in ms since the epoch; absent: now. */
  readonly at: number | undefined
}

const options = {
  ...configOption,
  ...formatOption,
  as: { type: 'string' },
  anonymous: { type: 'boolean' },
  header: { type: 'string', short: 'H', multiple: true },
  peer: { type: 'string' },
  at: { type: 'string' },
  log: { type: 'string' },
  preset: { type: 'boolean' },
} as const

/** Reads the arguments of `gatehouse explain`. */
export const readExplainCall = reader((argv) => {
  const { values, positionals } = readOptions(argv, options, (isUnknown) => (isUnknown ? hintForDashedId(argv) : ''))
  const asJson = isJson(values.format)
  if (values.preset === true) return explainPresets(positionals, asJson)
  if (values.log !== undefined) return explainLog(values.log, requestIn(positionals, values), asJson)
  const task = requestTask(positionals, values)
  return (terminal) => explainRequest(task, asJson, { ...terminal, file: values.config })
})

/** `gatehouse explain --preset [NAME]`: the settings of one preset, or of all. */
function explainPresets([name, ...more]: readonly string[], asJson: boolean): (terminal: Terminal) => Promise<number> {
  takeNone(more)
  const shown = Object.entries(presets).filter(([each]) => name === undefined || each === name)
  if (shown.length === 0) throw new CallFault(`there is no preset "${name}"; known: ${Object.keys(presets).join(', ')}`)
  const text = asJson
    ? jsonText({ presets: Object.fromEntries(shown) })
    : shown.map(([each, preset]) => presetAsYaml(each, preset)).join('\n')
  return async ({ out }) => (out(text), 0)
}

/**
 * A hint for request ids that begin with a dash: the gateway keeps the id of a trusted proxy, which
 * may begin with one.
 */
function hintForDashedId(argv: readonly string[]): string {
  const isAboutLog = argv.some((arg) => /^--log(?:=|$)/.test(arg))
  return isAboutLog ? '; write an id that begins with "-" at the end, after --' : ''
}

type Values = ValuesOf<typeof options>

function requestTask(
  [first, second, ...more]: readonly string[],
  { as, anonymous, header = [], peer, at }: Values,
): RequestTask {
  takeNone(more)
  if (first === undefined) throw new CallFault('explain needs a method and a URL, or --log FILE and a request id')
  if (as !== undefined && anonymous === true) throw new CallFault('--as and --anonymous contradict each other')
  const [method, url] = second === undefined ? ['GET', first] : [first, second]
  if (!/^[!#$%&'*+.^`|~\w-]+$/.test(method)) throw new CallFault(`"${method}" is not a method`)
  if (!/^(https?:\/\/[^/?#\s]+|\/)/i.test(url)) throw new CallFault(neitherUrlNorPath(url))
  const malformed = header.find((line) => !/^[!#$%&'*+.^`|~\w-]+:/.test(line))
  if (malformed !== undefined) throw new CallFault(`"${malformed}" is not a header: write 'Name: value'`)
  const time = at === undefined ? undefined : Date.parse(at)
  if (peer !== undefined && ipAddress(peer) === undefined)
    throw new CallFault(`"${peer}" is not an IP address: write 10.1.2.3`)
  if (Number.isNaN(time)) throw new CallFault(`"${at}" is not a time: write 2026-01-05T09:30:00Z`)
  return { as, method, url, headers: header, peer, at: time }
}

function neitherUrlNorPath(text: string): string {
  const isHost = /^(?:localhost|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d))(?::\d+)?(?:[/?#]|$)/i.test(text)
  const meant =
    /^[\w-]/.test(text) && !text.includes('://') ? `; did you mean ${isHost ? 'http://' : '/'}${text} ?` : ''
  return `"${text}" is neither a URL nor a path${meant}`
}

/** The ID of the request that the log is searched for. */
function requestIn([request, ...more]: readonly string[], { as, anonymous, header, peer, at }: Values): string {
  if (request === undefined) throw new CallFault('--log needs a request id, as shown on error pages and in the log')
  if ([as, anonymous, header, peer, at].some((value) => value !== undefined))
    throw new CallFault('--log takes a request id only')
  takeNone(more)
  return request
}

/** `gatehouse explain METHOD URL`: the decision that the gateway would make, step by step. */
async function explainRequest(task: RequestTask, asJson: boolean, input: CommandInput): Promise<number> {
  const loaded = loadAndReport(asJson ? { ...input, err: () => {} } : input, 'faults')
  if (!loaded.ok) {
    if (asJson) input.err(`gatehouse: ${input.file} is invalid: run gatehouse check\n`)
    return 1
  }
  const { config, sources } = loaded
  const claims = task.as === undefined ? undefined : readClaims(task.as)
  const request = suppliedRequest(task, config)
  const clock = task.at === undefined ? systemClock : { now: () => task.at ?? 0 }
  const explanation = explain(request, personWith(claims, config), config, clock)
  const as = claims === undefined ? 'nobody' : String(claims['sub'] ?? 'somebody (the claims have no sub)')
  if (claims !== undefined && (claims['sub'] ?? undefined) === undefined)
    input.err('gatehouse: the claims have no sub, which every sign-in has; using sub "somebody"\n')
  const paint = input.paintOut ?? withoutColors
  input.out(
    asJson ? jsonText({ request, as, ...explanation }) : explainedText(explanation, { request, as, sources, paint }),
  )
  return 0
}

/**
 * Completes a request: a path alone is requested at `external_url`, and missing header fields are
 * those of a page load in a browser.
 */
function suppliedRequest({ method, url, headers, peer }: RequestTask, config: GatewayConfig): SuppliedRequest {
  const [, host = config.externalUrl.host, rest = url] = /^https?:\/\/([^/?#]+)([^]*)$/i.exec(url) ?? []
  const target = rest.replace(/#.*$/s, '')
  const given = headers.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
  const has = (name: string) => given.some(([known]) => known.toLowerCase() === name)
  const accept = has('accept') || has('sec-fetch-mode') ? [] : ['Accept', 'text/html']
  const connection = has('upgrade') && !has('connection') ? ['Connection', 'Upgrade'] : []
  const rawHeaders = [...(has('host') ? [] : ['Host', host]), ...accept, ...connection, ...given.flat()]
  return { method: method.toUpperCase(), target: target.startsWith('/') ? target : `/${target}`, rawHeaders, peer }
}

interface ExplainedTextParts {
  readonly request: SuppliedRequest
  readonly as: string
  readonly sources: Sources
  readonly paint: Paint
}

function explainedText(
  { steps, decision, upstream }: Explanation,
  { request, as, sources, paint }: ExplainedTextParts,
): string {
  const host = request.rawHeaders[request.rawHeaders.findIndex((name) => name.toLowerCase() === 'host') + 1]
  const lines = [`${paint('bold', printable(`${request.method} ${host}${request.target}`))}, as ${printable(as)}`, '']
  const addStep = (name: string, text: string) => lines.push(`  ${paint('grey', name.padEnd(11))} ${printable(text)}`)
  if (steps.length === 0) lines.pop()
  for (const { name, text, place } of steps) {
    addStep(name, text)
    if (place !== undefined && name === 'rule') lines.push(...quoted(place, sources, paint))
  }
  lines.push('', ...decisionLines(decision, paint))
  if (upstream !== undefined) lines.push(...upstreamLines(upstream, paint))
  return `${lines.join('\n')}\n`
}

function quoted(place: Place, sources: Sources, paint: Paint): string[] {
  const quote = sources.quote(place)
  const indent = ' '.repeat(14)
  return [
    `${indent}${paint('cyan', placeText(place))}`,
    ...(quote ? [`${indent}${paint('grey', quote.text.trim())}`] : []),
  ]
}

const outcomes: Readonly<Record<Decision['outcome'], string>> = {
  pass: 'forwarded to the upstream',
  sign_in: 'redirected to the sign-in',
  caller_refused: 'refused: the credentials are not accepted',
  unauthorized: 'refused: nobody is signed in',
  forbidden: 'refused: forbidden',
  cross_site: 'refused: sent by a page of another site',
  preflight: 'responded to by the gateway: a preflight',
  reload: 'the browser repeats the request with its SameSite=Strict cookie',
  respond: 'the gateway itself responds',
  maintenance: 'refused: maintenance',
  no_route: 'refused: no upstream',
  sign_out: 'signed out by the gateway',
  unavailable: 'no decision is possible now',
  refused: 'refused',
  own_url: 'served by the gateway itself',
}

function decisionLines({ outcome, status, code, location, why, note }: Decision, paint: Paint): string[] {
  const isGood = status === undefined || status < 400
  const head = paint(isGood ? 'green' : 'red', `${status === undefined ? '' : `${status} `}${outcomes[outcome]}`)
  const advice = code === undefined ? undefined : adviceOn(code)
  return [
    head + (location === undefined || !isGood ? '' : `: ${printable(location)}`),
    ...(why === undefined ? [] : [`  because   ${printable(why)}`]),
    ...(note === undefined ? [] : [`  note      ${printable(note)}`]),
    ...(code === undefined ? [] : [`  code      ${code}`]),
    ...(location === undefined || isGood ? [] : [`  sign-in   ${printable(location)}`]),
    ...(advice === undefined ? [] : [`  to do     ${advice.todo}`]),
  ]
}

function upstreamLines(
  { name, url, identity, identityBytes, absent, removed, others }: UpstreamRequest,
  paint: Paint,
): string[] {
  const list = (title: string, headers: readonly (readonly [string, string])[]) =>
    headers.length === 0
      ? []
      : ['', `  ${title}`, ...headers.map(([header, text]) => `    ${paint('cyan', `${header}:`)} ${printable(text)}`)]
  return [
    `  to ${name}: ${printable(url)}`,
    ...list(`identity headers (${identityBytes} bytes)`, identity),
    ...list('identity headers that are not sent', absent),
    ...list('removed from the client’s request', removed),
    ...list('forwarded', others),
  ]
}

/** `gatehouse explain --log FILE ID`: what the log says about a request. */
function explainLog(log: string, request: string, asJson: boolean): (terminal: Terminal) => Promise<number> {
  return async ({ out, err, paintOut = withoutColors }) => {
    const logStory = new LogStory(request)
    try {
      const input = log === '-' ? process.stdin : createReadStream(log)
      for await (const line of readLines(input.setEncoding('utf8'))) logStory.add(line)
    } catch (error) {
      throw new OperatorError(`${log} ${explainFileError(error)}`, { cause: error })
    }
    const story = logStory.story()
    if (story === undefined) {
      err(
        `gatehouse: ${displayName(log)} has no line about the request ${request}: check that it is the log of that time, ` +
          `from every replica, as JSON (log.format). Requests that were not refused are logged only with log.access: true and log.level: info.\n`,
      )
      return 1
    }
    out(asJson ? jsonText(story) : storyText(story, paintOut))
    return 0
  }
}

function storyText({ request, told, code, rule, advice }: Story, paint: Paint): string {
  const lines = [
    paint('bold', `request ${printable(request)}`),
    '',
    ...told.map((text) => `  ${printable(text)}`),
    ...(code === undefined ? [] : ['', `  code      ${printable(code)}`]),
    ...(advice === undefined ? [] : [`  means     ${advice.means}`]),
    ...(rule === undefined ? [] : [`  rule      ${printable(rule)}`]),
    ...(advice === undefined ? [] : [`  to do     ${advice.todo}`]),
  ]
  return `${lines.join('\n')}\n`
}
