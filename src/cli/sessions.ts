import {
  type Administration,
  type EndingResult,
  openAdministration,
  type SessionSummary,
} from '../admin/administration.ts'
import type { Selection } from '../admin/selection.ts'
import { didYouMean } from '../config/document/did-you-mean.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { systemClock } from '../core/clock.ts'
import { OperatorError } from '../core/errors.ts'
import { createLog, type WritingLog } from '../observe/writing-log.ts'
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
  type ValuesOf,
} from './command.ts'
import { loadOrReport } from './load.ts'
import { logFormat } from './paint.ts'

/** How long the command waits for audit events to be written, in ms. */
const flushLimitMs = 1000

/** A subcommand of `gatehouse sessions` with its arguments. */
type SessionsTask =
  | { readonly kind: 'list'; readonly selection: Selection; readonly asJson: boolean }
  | { readonly kind: 'show'; readonly key: string; readonly asJson: boolean }
  | { readonly kind: 'end'; readonly selection: Selection; readonly asJson: boolean }

/**
 * `gatehouse sessions`: lists, shows and ends sessions of running gateways. The result goes to
 * `out`, audit events go to standard error.
 */
async function sessions(task: SessionsTask, input: CommandInput): Promise<number> {
  const config = loadOrReport(input)
  if (config === undefined) return 1
  const log = createLog({
    level: task.kind === 'end' ? 'info' : 'warn',
    stream: 'stderr',
    format: logFormat('auto', process.stderr.isTTY, input.env),
  })
  try {
    const administration = await openAdministration(config, { log, clock: systemClock })
    try {
      return await carryOut(task, administration, { input, config, log })
    } finally {
      await administration.close()
    }
  } finally {
    await log.flush(flushLimitMs)
  }
}

interface TaskParts {
  readonly input: CommandInput
  readonly config: GatewayConfig
  readonly log: Pick<WritingLog, 'flush'>
}

async function carryOut(
  task: SessionsTask,
  administration: Administration,
  { input: { out, err }, config, log }: TaskParts,
): Promise<number> {
  switch (task.kind) {
    case 'list': {
      let count = 0
      for await (const session of administration.list(task.selection)) {
        if (count === 0 && !task.asJson) out(`${headOf(columnsOf(config))}\n`)
        out(`${task.asJson ? JSON.stringify(summaryOf(session)) : asLine(session, columnsOf(config))}\n`)
        count += 1
      }
      const isNarrowed = Object.keys(task.selection).length > 0
      if (count === 0) err(`gatehouse: ${isNarrowed ? 'no session matches' : 'nobody is signed in'}\n`)
      return 0
    }
    case 'show':
      for await (const session of administration.list({ key: task.key })) {
        out(task.asJson ? jsonText(details(session)) : sessionText(session))
        return 0
      }
      throw new OperatorError(`unknown session ${quoted(task.key)}`)
    case 'end': {
      const { key } = task.selection
      const outcome = await administration.end(task.selection)
      // On a terminal the result comes after the audit events, not between them.
      await log.flush(flushLimitMs)
      if (outcome.failure !== undefined) err(`gatehouse: some sessions have not ended: ${outcome.failure}\n`)
      else if (key !== undefined && outcome.ended === 0) throw new OperatorError(`unknown session ${quoted(key)}`)
      out(task.asJson ? jsonText(counts(outcome)) : endingText(outcome, config.providers))
      return outcome.failure === undefined ? 0 : 1
    }
  }
}

/** The columns of the list after those of each session, which depend on the configuration. */
function columnsOf({ admin, providers }: GatewayConfig): readonly ('sub' | 'sid' | 'person' | 'provider')[] {
  const hasPerson = admin?.page?.showClaim !== undefined
  return [
    'sub',
    'sid',
    ...(hasPerson ? ['person' as const] : []),
    ...(providers.length > 1 ? ['provider' as const] : []),
  ]
}

function headOf(columns: ReturnType<typeof columnsOf>): string {
  return ['session'.padEnd(57), 'signed in at'.padEnd(24), 'expires at'.padEnd(24), ...columns].join('  ')
}

function asLine(session: SessionSummary, columns: ReturnType<typeof columnsOf>): string {
  const names = columns.map((column) => quoted(session[column]))
  return [session.key, iso(session.created_at), iso(session.absolute_expires_at), ...names].join('  ')
}

function summaryOf(session: SessionSummary) {
  const { key, provider, sub, person, sid, origin, browser, address, bound_at, accessKey } = session
  return {
    session: key,
    provider,
    sub,
    person,
    sid,
    origin,
    signed_in_at: iso(session.created_at),
    last_used_at: isoOf(session.last_used_at),
    expires_at: iso(session.absolute_expires_at),
    browser,
    address,
    bound: bound_at !== undefined,
    ...(accessKey && { key: accessKey }),
  }
}

function details(session: SessionSummary) {
  const { acr, auth_time } = session.authentication ?? {}
  return {
    ...summaryOf(session),
    acr,
    authenticated_at: isoOf(auth_time),
    claims_of: iso(session.userinfo_read_at),
    access_token_expires_at: isoOf(session.access_token_expires_at),
    refresh_token: session.hasRefreshToken,
    claim_names: session.claimNames,
  }
}

function sessionText(session: SessionSummary): string {
  const { provider, person, origin, bound_at, access_token_expires_at, last_used_at } = session
  const { acr, auth_time } = session.authentication ?? {}
  const lines: readonly (readonly [name: string, value: string])[] = [
    ['session', session.key],
    ...(provider === undefined ? [] : [['provider', provider] as const]),
    ['sub', quoted(session.sub)],
    ...(person === undefined ? [] : [['person', quoted(person)] as const]),
    ['sid', quoted(session.sid)],
    ['signed in at', `${iso(session.created_at)}${origin === undefined ? '' : `, ${origin}`}`],
    ['browser', session.browser ?? '-'],
    ['address', session.address ?? '-'],
    [
      'last used at',
      last_used_at === undefined ? 'within the last idle timeout' : `${iso(last_used_at)}, approximately`,
    ],
    ['authenticated', isoOf(auth_time) ?? '-'],
    ['acr', quoted(acr)],
    ['bound', bound_at === undefined ? 'no' : `to a device, since ${iso(bound_at)}`],
    ['expires at', `${iso(session.absolute_expires_at)}, or when it is idle for too long`],
    ['claims as of', iso(session.userinfo_read_at)],
    ['access token', access_token_expires_at === undefined ? '-' : `until ${iso(access_token_expires_at)}`],
    ['refresh token', session.hasRefreshToken ? 'yes' : 'no'],
    ['claim names', session.claimNames.map(quoted).join(', ')],
  ]
  return lines.map(([name, value]) => `${name.padEnd(14)}${value}\n`).join('')
}

function counts({ ended, atProvider, failure }: EndingResult) {
  return { ended, at_provider: atProvider, failure }
}

/** How many sessions have ended, and the results at the provider. */
function endingText({ ended, atProvider }: EndingResult, [{ issuer }, ...others]: GatewayConfig['providers']): string {
  const where = others.length === 0 ? `the provider ${issuer}` : 'the providers'
  const texts = {
    ended: 'ended there too',
    unsupported: 'the provider has no end_session_endpoint',
    unknown: 'the provider did not confirm the end',
    unreachable: 'not ended there, because the provider could not be reached',
    not_asked: 'no request was sent',
  } as const
  const results = (['ended', 'unknown', 'unsupported', 'unreachable', 'not_asked'] as const).flatMap((outcome) => {
    const count = atProvider[outcome]
    return count === undefined ? [] : `${sessionCount(count)}: ${texts[outcome]}`
  })
  const atIssuer = results.map((result) => `at ${where}, ${result}\n`).join('')
  return `${sessionCount(ended)} ended\n${atIssuer}`
}

function sessionCount(count: number): string {
  return count === 1 ? '1 session' : `${count} sessions`
}

function iso(time: number): string {
  return new Date(time).toISOString()
}

function isoOf(time: number | undefined): string | undefined {
  return time === undefined ? undefined : iso(time)
}

/** A provider's text on one line of a terminal: quoted unless it is one plain word. */
function quoted(text: string | undefined): string {
  if (text === undefined) return '-'
  if (/^[^\s"\p{C}]+$/u.test(text) && text !== '-') return text
  const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(text).replace(/\p{C}/gu, (char) => [...char.split('')].map(escaped).join(''))
}

/** Reads the arguments of `gatehouse sessions`. */
export const readSessionsCall = reader((argv) => {
  const { task, file } = readSessionsArguments(argv)
  return (terminal) => sessions(task, { ...terminal, file })
})

export function readSessionsArguments(argv: readonly string[]): { readonly task: SessionsTask; readonly file: string } {
  // A session key may begin with a dash; it is not an option.
  const isDashedKey = (arg: string) => /^-[\w-]{23}:[\w-]{32}$/.test(arg)
  const others = argv.filter((arg) => !isDashedKey(arg))
  const { values, positionals } = readOptions(others, sessionsOptions)
  const [name, ...keys] = positionals
  return { task: taskOf(name, [...keys, ...argv.filter(isDashedKey)], values), file: values.config }
}

const sessionsOptions = {
  ...configOption,
  ...formatOption,
  sub: { type: 'string' },
  sid: { type: 'string' },
  email: { type: 'string' },
  upstream: { type: 'string' },
  all: { type: 'boolean' },
  yes: { type: 'boolean' },
} as const

function taskOf(
  name: string | undefined,
  [key, ...more]: readonly string[],
  { sub, sid, email, upstream, format, all = false, yes = false }: ValuesOf<typeof sessionsOptions>,
): SessionsTask {
  takeNone(more)
  const criteria = {
    ...(sub === undefined ? {} : { sub }),
    ...(sid === undefined ? {} : { sid }),
    ...(email === undefined ? {} : { email }),
    ...(upstream === undefined ? {} : { upstream }),
  }
  const empty = Object.entries(criteria).find(([, value]) => value === '')
  if (empty !== undefined) throw new CallFault(`--${empty[0]} is empty`)
  const hasCriteria = Object.keys(criteria).length > 0
  const asJson = isJson(format)
  switch (name) {
    case 'list':
      takeNone(key === undefined ? [] : [key])
      if (all || yes) throw new CallFault('sessions list takes --sub, --sid, --email, --upstream and --format only')
      return { kind: 'list', selection: criteria, asJson }
    case 'show':
      if (key === undefined) throw new CallFault('sessions show needs the key of a session')
      if (hasCriteria || all || yes) throw new CallFault('sessions show takes a key and --format only')
      return { kind: 'show', key, asJson }
    case 'end':
      if (Number(key !== undefined) + Number(hasCriteria) + Number(all) !== 1)
        throw new CallFault('sessions end needs one of these: a key; --sub, --sid, --email or --upstream; --all')
      if (all && !yes) throw new CallFault('sessions end --all needs --yes, because it signs all people out')
      return { kind: 'end', selection: key === undefined ? criteria : { key }, asJson }
    case undefined:
      throw new CallFault('sessions needs list, show or end')
    default: {
      const meant = didYouMean(name, ['list', 'show', 'end'])
      const hint = meant === undefined ? '' : `; did you mean "${meant}"?`
      throw new CallFault(`unknown command "sessions ${name}"${hint}`)
    }
  }
}
