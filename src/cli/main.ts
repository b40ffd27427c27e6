import { parseArgs } from 'node:util'
import { OperatorError, reason } from '../core/errors.ts'
import { check } from './check.ts'
import { demo } from './demo.ts'
import { health } from './health.ts'
import { run } from './run.ts'
import { readSessionsArguments, sessions } from './sessions.ts'

const usage = `gatehouse: an authentication gateway in front of applications that know nothing of OpenID Connect

  gatehouse run    --config FILE   serve, in the foreground, until SIGTERM or SIGINT
  gatehouse check  --config FILE   say everything that is wrong with the file, and run its tests
  gatehouse health --config FILE   exit 0 when the gateway of this file answers on this machine
  gatehouse demo   --config FILE   serve, with a toy provider and a toy application beside it
  gatehouse sessions list --config FILE [--sub SUB] [--sid SID] [--upstream NAME] [--json]
  gatehouse sessions show --config FILE KEY
  gatehouse sessions end  --config FILE KEY | [--sub SUB] [--sid SID] [--upstream NAME] | --all --yes
                                   look at the sessions of running gateways, and end them, when they are in Redis
  gatehouse help | version

FILE defaults to gateway.yaml.
`

/** What a command is given. */
export interface CommandInput {
  readonly file: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

type Command = (input: CommandInput) => Promise<number>

const commands: Readonly<Record<string, Command>> = { run, check, health, demo }

/** Runs a command; resolves to the exit code: 0 well, 1 something is wrong with what was given, 2 the call itself is. */
export async function main(argv: readonly string[]): Promise<number> {
  const out = (text: string) => void process.stdout.write(text)
  const err = (text: string) => void process.stderr.write(text)
  // A log that nobody reads any more must not end the gateway.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

  const call = readArguments(argv)
  if ('fault' in call) {
    err(`gatehouse: ${call.fault}\n\n${usage}`)
    return 2
  }
  const { name, file, command } = call
  if (name === 'help') {
    out(usage)
    return 0
  }
  if (name === 'version') {
    out(`${version}\n`)
    return 0
  }
  try {
    return await (command ?? (commands[name] as Command))({ file, env: process.env, out, err })
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    err(`gatehouse: ${error.message}\n`)
    return 1
  }
}

/** As in package.json; a test holds the two together. */
const version = '0.1.0'

/** `command` is absent when the name alone says what to do. */
interface Call {
  readonly name: string
  readonly file: string
  readonly command?: Command
}

function readArguments(argv: readonly string[]): Call | { readonly fault: string } {
  if (argv[0] === 'sessions') return sessionsCall(argv.slice(1))
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        config: { type: 'string', short: 'c', default: 'gateway.yaml' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean' },
      },
    })
    const [name = values.version === true ? 'version' : 'help', ...more] = positionals
    if (values.help === true) return { name: 'help', file: '' }
    if (more.length > 0) return { fault: `"${more.join(' ')}" is too much; a file is named with --config FILE` }
    if (!Object.hasOwn(commands, name) && name !== 'help' && name !== 'version')
      return { fault: `there is no command "${name}"` }
    return { name, file: values.config }
  } catch (error) {
    // The first sentence is about what was given; what follows is about how Node reads arguments.
    return { fault: `${reason(error).replace(/\..*$/s, '')}; a file is named with --config FILE` }
  }
}

function sessionsCall(argv: readonly string[]): Call | { readonly fault: string } {
  const read = readSessionsArguments(argv)
  if ('fault' in read) return read
  if ('help' in read) return { name: 'help', file: '' }
  return { name: 'sessions', file: read.file, command: (input) => sessions(read.task, input) }
}
