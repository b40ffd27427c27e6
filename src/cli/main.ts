import { parseArgs } from 'node:util'
import { OperatorError, reason } from '../core/errors.ts'
import { check } from './check.ts'
import { demo } from './demo.ts'
import { health } from './health.ts'
import { run } from './run.ts'

const usage = `gatehouse: an authentication gateway in front of applications that know nothing of OpenID Connect

  gatehouse run    --config FILE   serve, in the foreground, until SIGTERM or SIGINT
  gatehouse check  --config FILE   say everything that is wrong with the file, and run its tests
  gatehouse health --config FILE   exit 0 when the gateway of this file answers on this machine
  gatehouse demo   --config FILE   serve, with a toy provider and a toy application beside it
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

const commands: Readonly<Record<string, (input: CommandInput) => Promise<number>>> = { run, check, health, demo }

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
  const { name, file } = call
  if (name === 'help') {
    out(usage)
    return 0
  }
  if (name === 'version') {
    out(`${version}\n`)
    return 0
  }
  try {
    return await (commands[name] as (input: CommandInput) => Promise<number>)({ file, env: process.env, out, err })
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    err(`gatehouse: ${reason(error)}\n`)
    return 1
  }
}

/** As in package.json; a test holds the two together. */
const version = '0.1.0'

function readArguments(
  argv: readonly string[],
): { readonly name: string; readonly file: string } | { readonly fault: string } {
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
    if (more.length > 0) return { fault: `"${more.join(' ')}" is too much` }
    if (!Object.hasOwn(commands, name) && name !== 'help' && name !== 'version')
      return { fault: `there is no command "${name}"` }
    return { name, file: values.config }
  } catch (error) {
    return { fault: reason(error) }
  }
}
