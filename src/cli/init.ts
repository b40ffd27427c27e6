import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Answers, exportsFor, firstFile, type Question, questions } from '../../packages/setup/first-file.ts'
import { schemaText } from '../config/document/schema-text.ts'
import { loadConfig } from '../config/load.ts'
import { registrationsText } from '../config/registration.ts'
import { OperatorError } from '../core/errors.ts'
import { CallFault, commandPrefix, faultOf, reader, readOptions, takeNone, type Terminal } from './command.ts'
import { writeText } from './given-file.ts'
import { withoutColors } from './paint.ts'
import { formatDiagnostics } from './show-diagnostics.ts'

/** The arguments of `gatehouse init`. */
interface InitTask {
  readonly given: Partial<Answers>
  readonly file: string
  /** Overwrite existing files. */
  readonly force: boolean
}

const options = {
  issuer: { type: 'string' },
  'client-id': { type: 'string' },
  url: { type: 'string' },
  upstream: { type: 'string' },
  store: { type: 'string' },
  out: { type: 'string', short: 'o', default: 'gateway.yaml' },
  force: { type: 'boolean', default: false },
} as const

/** Reads the arguments of `gatehouse init`. */
export const readInitCall = reader((argv) => {
  const { values, positionals } = readOptions(argv, options)
  const { 'client-id': client_id, out: file, force, ...others } = values
  const all = Object.entries({ ...others, client_id }).filter(([, answer]) => answer !== undefined)
  const given = Object.fromEntries(all) as Partial<Answers>
  takeNone(positionals)
  for (const question of questions) {
    const why = faultOf(question.check, given[question.name])
    if (why !== undefined) throw new CallFault(`${optionOf(question)}: ${why}`)
  }
  return (terminal) => init({ given, file, force }, terminal)
})

function optionOf({ name }: Question): string {
  return `--${name.replace('_', '-')}`
}

/**
 * `gatehouse init`: writes a first configuration from five answers. Asks on a terminal for answers
 * that no option gives.
 */
async function init({ given, file, force }: InitTask, terminal: Terminal): Promise<number> {
  if (!force && existsSync(file))
    throw new OperatorError(`${file} exists already; --force overwrites it, --out NAME writes another file`)
  const missing = questions.filter(({ name, fallback }) => given[name] === undefined && fallback === undefined)
  if (missing.length > 0 && terminal.ask === undefined) {
    const wanted = missing.map((question) => `  ${optionOf(question)} ${question.example}\n`).join('')
    terminal.err(`gatehouse: without a terminal, init needs these options, for example:\n${wanted}`)
    return 2
  }
  const answers = await complete(given, terminal)
  // Without `force`, a file that appeared while the person answered is not overwritten.
  writeText(file, firstFile(answers), force)
  // An existing schema file is kept without an error: the person may have put it there.
  const schemaFile = join(dirname(file), 'gateway.schema.json')
  if (force || !existsSync(schemaFile)) writeText(schemaFile, schemaText(), force)
  return conclude(file, answers, terminal)
}

async function complete(given: Partial<Answers>, terminal: Terminal): Promise<Answers> {
  const answers: Partial<Record<keyof Answers, string>> = { ...given }
  for (const question of questions) answers[question.name] ??= await answerTo(question, terminal)
  return answers as unknown as Answers
}

/**
 * Asks until the answer is valid; an empty answer means the default. Without a terminal, returns
 * the default.
 */
async function answerTo(question: Question, { ask, out, paintOut = withoutColors }: Terminal): Promise<string> {
  const { text, example, fallback = '' } = question
  if (ask === undefined) return fallback
  const hint = fallback === '' ? `such as ${example}` : `default: ${fallback}`
  for (;;) {
    out(`${paintOut('bold', text)}\n`)
    const answer = (await ask(`  (${hint}) > `)).trim() || fallback
    const why = faultOf(question.check, answer)
    if (why === undefined) return answer
    out(`  ${paintOut('red', why)}\n`)
  }
}

/** Checks the written file with placeholder secrets, as `check` does, and prints the next steps. */
function conclude(file: string, answers: Answers, terminal: Terminal): number {
  const { out, err, paintOut = withoutColors, paintErr } = terminal
  const placeholders = {
    CLIENT_SECRET: 'a placeholder to check the file',
    SESSION_KEY: Buffer.alloc(32).toString('base64'),
  }
  const loaded = loadConfig(file, placeholders)
  const diagnostics = loaded.ok ? loaded.warnings : loaded.diagnostics
  if (diagnostics.length > 0) err(`${formatDiagnostics(diagnostics, loaded.sources, paintErr)}\n`)
  if (!loaded.ok) {
    err(`gatehouse: ${file} was written, but is invalid; fix the errors above\n`)
    return 1
  }
  const named = file === 'gateway.yaml' ? '' : ` --config ${file}`
  const gatehouse = commandPrefix(terminal)
  const next = [
    ...exportsFor(answers),
    `${gatehouse} check${named}    # check the file`,
    `${gatehouse} doctor${named}   # check the provider, the session store and the application`,
    `${gatehouse} run${named}      # start the gateway`,
  ]
  out(
    `${paintOut('green', `${file} was written.`)}\n\n${registrationsText(loaded.config)}\n` +
      `Then:\n${next.map((line) => `  ${line}\n`).join('')}`,
  )
  return 0
}
