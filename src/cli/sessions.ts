import { systemClock } from '../core/clock.ts'
import { OperatorError } from '../core/errors.ts'
import { createLog } from '../observe/log.ts'
import {
  openAdministration,
  type Administration,
  type EndedByAdministrator,
  type Selection,
  type SessionSummary,
} from '../server/administration.ts'
import { loadOrSay } from './load.ts'
import { type Call, type CommandInput, configOption, readOptions } from './command.ts'

/** How long the audit events are waited for, in ms. */
const lastLinesMs = 1000

/** What `gatehouse sessions` is asked to do. */
export type SessionsTask =
  | { readonly kind: 'list'; readonly selection: Selection; readonly asJson: boolean }
  | { readonly kind: 'show'; readonly key: string }
  | { readonly kind: 'end'; readonly selection: Selection }

/** `gatehouse sessions`: looks at the sessions of running gateways, and ends them. The result goes to `out`, audit events to standard error. */
export async function sessions(task: SessionsTask, input: CommandInput): Promise<number> {
  const config = loadOrSay(input)
  if (config === undefined) return 1
  const log = createLog({ level: task.kind === 'end' ? 'info' : 'warn', stream: 'stderr' })
  try {
    const administration = await openAdministration(config, { log, clock: systemClock })
    try {
      return await carryOut(task, administration, { ...input, issuer: config.provider.issuer })
    } finally {
      await administration.close()
    }
  } finally {
    await log.flush(lastLinesMs)
  }
}

async function carryOut(
  task: SessionsTask,
  administration: Administration,
  { out, err, issuer }: Pick<CommandInput, 'out' | 'err'> & { readonly issuer: string },
): Promise<number> {
  switch (task.kind) {
    case 'list':
      for await (const session of administration.list(task.selection))
        out(`${task.asJson ? asJson(session) : asLine(session)}\n`)
      return 0
    case 'show':
      for await (const session of administration.list({ key: task.key })) {
        out(described(session))
        return 0
      }
      throw new OperatorError(`there is no session ${shown(task.key)}`)
    case 'end': {
      const { key } = task.selection
      const outcome = await administration.end(task.selection)
      if (outcome.failure !== undefined) err(`gatehouse: not all sessions have ended: ${outcome.failure}\n`)
      else if (key !== undefined && outcome.ended === 0) throw new OperatorError(`there is no session ${shown(key)}`)
      out(told(outcome, issuer))
      return outcome.failure === undefined ? 0 : 1
    }
  }
}

function asLine({ key, sub, sid, created_at, absolute_expires_at }: SessionSummary): string {
  return [key, shown(sub), sid === undefined ? '-' : shown(sid), iso(created_at), iso(absolute_expires_at)].join('  ')
}

function asJson({ key, sub, sid, origin, created_at, absolute_expires_at }: SessionSummary): string {
  const times = { signed_in_at: iso(created_at), expires_at: iso(absolute_expires_at) }
  return JSON.stringify({ session: key, sub, sid, origin, ...times })
}

function described(session: SessionSummary): string {
  const { key, sub, sid, origin, access_token_expires_at } = session
  const lines = [
    ['session', key],
    ['sub', shown(sub)],
    ['sid', sid === undefined ? '-' : shown(sid)],
    ['signed in at', `${iso(session.created_at)}${origin === undefined ? '' : `, ${origin}`}`],
    ['expires at', `${iso(session.absolute_expires_at)}, or when it is idle for too long`],
    ['claims of', iso(session.userinfo_read_at)],
    ['access token', access_token_expires_at === undefined ? '-' : `until ${iso(access_token_expires_at)}`],
    ['refresh token', session.hasRefreshToken ? 'yes' : 'no'],
    ['claim names', session.claimNames.map(shown).join(', ')],
  ] as const
  return lines.map(([name, value]) => `${name.padEnd(14)}${value}\n`).join('')
}

/** What has ended, and what the provider said to it. */
function told({ ended, atProvider }: EndedByAdministrator, issuer: string): string {
  const texts = {
    ended: 'ended there too',
    unsupported: 'it has no end-session endpoint',
    unreachable: 'it could not be reached, or refused: not ended there',
    not_asked: 'not asked any more',
  } as const
  const answers = (['ended', 'unsupported', 'unreachable', 'not_asked'] as const).flatMap((outcome) => {
    const count = atProvider[outcome]
    return count === undefined ? [] : `${sessionCount(count)}: ${texts[outcome]}`
  })
  const there = answers.map((answer) => `at the provider ${issuer}, ${answer}\n`).join('')
  return `${sessionCount(ended)} ended\n${there}`
}

function sessionCount(count: number): string {
  return count === 1 ? '1 session' : `${count} sessions`
}

function iso(time: number): string {
  return new Date(time).toISOString()
}

/** A provider's text on one line of a terminal: quoted unless it is one plain word. */
function shown(text: string): string {
  if (/^[^\s"\p{C}]+$/u.test(text) && text !== '-') return text
  const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(text).replace(/\p{C}/gu, (char) => [...char.split('')].map(escaped).join(''))
}

/** What stands behind `gatehouse sessions`. */
export function readSessionsCall(argv: readonly string[]): Call {
  const read = readSessionsArguments(argv)
  if (!('task' in read)) return read
  return { carryOut: (terminal) => sessions(read.task, { ...terminal, file: read.file }) }
}

export function readSessionsArguments(
  argv: readonly string[],
): { readonly task: SessionsTask; readonly file: string } | { readonly fault: string } | { readonly help: true } {
  // A key may begin with a dash, and is no option for that.
  const isDashedKey = (arg: string) => /^-[\w-]{23}:[\w-]{32}$/.test(arg)
  const read = readOptions(
    argv.filter((arg) => !isDashedKey(arg)),
    sessionsOptions,
  )
  if (!read.ok) return read
  const { values, positionals } = read
  const [name, ...rest] = positionals
  const keys = [...rest, ...argv.filter(isDashedKey)]
  const task = taskOf(name, keys, values)
  return typeof task === 'string' ? { fault: task } : { task, file: values.config }
}

const sessionsOptions = {
  ...configOption,
  sub: { type: 'string' },
  sid: { type: 'string' },
  upstream: { type: 'string' },
  json: { type: 'boolean' },
  all: { type: 'boolean' },
  yes: { type: 'boolean' },
} as const

interface Options {
  readonly sub?: string | undefined
  readonly sid?: string | undefined
  readonly upstream?: string | undefined
  readonly json?: boolean | undefined
  readonly all?: boolean | undefined
  readonly yes?: boolean | undefined
}

/** The task, or what is wrong with the call. */
function taskOf(name: string | undefined, keys: readonly string[], options: Options): SessionsTask | string {
  const { sub, sid, upstream, json = false, all = false, yes = false } = options
  const [key, ...more] = keys
  if (more.length > 0) return `"${more.join(' ')}" is too much`
  const narrowing = {
    ...(sub === undefined ? {} : { sub }),
    ...(sid === undefined ? {} : { sid }),
    ...(upstream === undefined ? {} : { upstream }),
  }
  const empty = Object.entries(narrowing).find(([, value]) => value === '')
  if (empty !== undefined) return `--${empty[0]} is empty`
  const isNarrowed = Object.keys(narrowing).length > 0
  switch (name) {
    case 'list':
      if (key !== undefined) return `"${key}" is too much`
      if (all || yes) return 'sessions list takes --sub, --sid, --upstream and --json only'
      return { kind: 'list', selection: narrowing, asJson: json }
    case 'show':
      if (key === undefined) return 'sessions show wants the key of a session'
      if (isNarrowed || json || all || yes) return 'sessions show takes nothing but a key'
      return { kind: 'show', key }
    case 'end':
      if (json) return 'sessions end does not take --json'
      if (Number(key !== undefined) + Number(isNarrowed) + Number(all) !== 1)
        return 'sessions end wants one of: a key; --sub, --sid, --upstream; --all'
      if (all && !yes) return 'sessions end --all wants --yes as well: it signs everybody out'
      return { kind: 'end', selection: key === undefined ? narrowing : { key } }
    default:
      return name === undefined ? 'sessions wants list, show or end' : `there is no command "sessions ${name}"`
  }
}
