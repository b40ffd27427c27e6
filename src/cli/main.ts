import { createInterface, type Interface } from 'node:readline'
import { parseArgs } from 'node:util'
import { didYouMean } from '../config/document/did-you-mean.ts'
import { OperatorError } from '../core/errors.ts'
import { ownMember } from '../core/json.ts'
import { version } from '../core/version.ts'
import {
  aboutFile,
  type Call,
  CallFault,
  type CommandReader,
  reader,
  readOptions,
  takeNone,
  type Terminal,
} from './command.ts'
import { help, overview } from './help.ts'
import { paintFor } from './paint.ts'

/**
 * The modules of a command are loaded when it is called, because a health check every few seconds
 * must not load the whole gateway.
 */
const commands: Readonly<Record<string, () => Promise<CommandReader>>> = {
  init: async () => (await import('./init.ts')).readInitCall,
  import: async () => (await import('./import.ts')).readImportCall,
  run: async () => aboutFile((await import('./run.ts')).run),
  check: async () => (await import('./check.ts')).readCheckCall,
  register: async () => (await import('./register.ts')).readRegisterCall,
  doctor: async () => (await import('./doctor.ts')).readDoctorCall,
  explain: async () => (await import('./explain.ts')).readExplainCall,
  sessions: async () => (await import('./sessions.ts')).readSessionsCall,
  'service-account': async () => (await import('./service-account.ts')).readServiceAccountCall,
  health: async () => aboutFile((await import('./health.ts')).health),
  schema: async () => printing((await import('../config/document/schema-text.ts')).schemaText),
  demo: async () => aboutFile((await import('./demo.ts')).demo),
  completion: async () => (await import('./completion.ts')).readCompletionCall,
  help: async () => readHelpCall,
  version: async () => printing(() => `${version}\n`),
}

/**
 * Runs a command. Resolves to the exit code: 0 success, 1 the input or a result has an error, 2 the
 * call is invalid.
 */
export async function main(argv: readonly string[]): Promise<number> {
  const out = (text: string) => void process.stdout.write(text)
  const err = (text: string) => void process.stderr.write(text)
  // The gateway keeps running when the reader of its log closes the pipe.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

  const { name, rest } = commandOf(argv)
  const call = await callOf(name, rest)
  if ('fault' in call) {
    err(
      `gatehouse: ${call.fault}\nFor help, run: gatehouse help${ownMember(help, name) === undefined ? '' : ` ${name}`}\n`,
    )
    return 2
  }
  if ('help' in call) {
    out(ownMember(help, name) ?? overview)
    return 0
  }
  const { env } = process
  const paints = { paintOut: paintFor(process.stdout.isTTY, env), paintErr: paintFor(process.stderr.isTTY, env) }
  try {
    return await call.carryOut({ env, out, err, ask: askOnTerminal(), ...paints })
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    err(`gatehouse: ${error.message}\n`)
    return 1
  }
}

/** The command is the first positional argument; `--config FILE` may precede it. */
function commandOf(argv: readonly string[]): { readonly name: string; readonly rest: readonly string[] } {
  const options = { config: { type: 'string', short: 'c' } } as const
  const { tokens } = parseArgs({ args: [...argv], strict: false, tokens: true, options })
  const first = tokens.find(({ kind }) => kind === 'positional')
  const asksVersion = ['--version', '-v', '-V'].some((option) => argv.includes(option))
  if (first === undefined) return { name: asksVersion ? 'version' : 'help', rest: [] }
  return { name: argv[first.index] as string, rest: argv.toSpliced(first.index, 1) }
}

async function callOf(name: string, rest: readonly string[]): Promise<Call> {
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined
  return load === undefined ? { fault: unknownCommand(name) } : (await load())(rest)
}

function unknownCommand(name: string): string {
  const meant = didYouMean(name, Object.keys(commands))
  return `unknown command "${name}"${meant === undefined ? '' : `; did you mean "${meant}"?`}`
}

function printing(text: () => string): CommandReader {
  return reader((argv) => {
    takeNone(readOptions(argv, {}).positionals)
    return async ({ out }) => (out(text()), 0)
  })
}

const readHelpCall = reader(([about, ...more]) => {
  takeNone(more)
  if (about !== undefined && !about.startsWith('-') && !Object.hasOwn(commands, about))
    throw new CallFault(unknownCommand(about))
  return async ({ out }) => (out(ownMember(help, about ?? '') ?? overview), 0)
})

/**
 * Asks questions on the terminal of the process and reads one line for each. Returns `undefined`
 * when the process has no terminal.
 */
function askOnTerminal(): Terminal['ask'] {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return undefined
  let reader: Interface | undefined
  let lines: AsyncIterator<string> | undefined
  return async (question) => {
    reader ??= createInterface({ input: process.stdin, output: process.stdout })
    // The iterator keeps lines that arrive before their question, such as pasted lines. question()
    // loses them.
    lines ??= reader[Symbol.asyncIterator]()
    reader.setPrompt(question)
    reader.prompt()
    const { value, done } = await lines.next()
    if (done !== true) return value
    // After Ctrl+D or Ctrl+C the cursor is still on the line of the question.
    process.stdout.write('\n')
    throw new OperatorError('the input ended before all questions were answered; nothing was written')
  }
}
