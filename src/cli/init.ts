import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { schemaText } from '../config/document/schema.ts'
import { loadConfig } from '../config/load.ts'
import { registrationText } from '../config/registration.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { type Answers, exportsFor, firstFile, type Question, questions } from '../setup/first-file.ts'
import { type Call, calledAs, readOptions, type Terminal, unexpected } from './command.ts'
import { plainly } from './paint.ts'
import { shownDiagnostics } from './show-diagnostics.ts'

/** What `gatehouse init` is given beside what it asks for. */
export interface InitTask {
  readonly given: Partial<Answers>
  readonly file: string
  /** Overwrite what is there. */
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

/** What stands behind `gatehouse init`. */
export function readInitCall(argv: readonly string[]): Call {
  const read = readOptions(argv, options)
  if (!read.ok) return read
  const { 'client-id': client_id, out: file, force, ...others } = read.values
  const all = Object.entries({ ...others, client_id }).filter(([, answer]) => answer !== undefined)
  const given = Object.fromEntries(all) as Partial<Answers>
  const faults = questions.flatMap((question) => {
    const why = wrong(question, given[question.name])
    return why === undefined ? [] : [`${optionOf(question)}: ${why}`]
  })
  const fault = unexpected(read.positionals) ?? faults[0]
  return fault === undefined ? { carryOut: (terminal) => init({ given, file, force }, terminal) } : { fault }
}

/** What is wrong with an answer; one that was not given is not wrong. */
function wrong({ check }: Question, answer: string | undefined): string | undefined {
  try {
    if (answer !== undefined) check(answer)
    return undefined
  } catch (error) {
    if (error instanceof SyntaxError) return error.message
    throw error
  }
}

function optionOf({ name }: Question): string {
  return `--${name.replace('_', '-')}`
}

/**
 * `gatehouse init`: writes a first configuration out of five answers, which are asked for on a
 * terminal unless they were given.
 */
export async function init({ given, file, force }: InitTask, terminal: Terminal): Promise<number> {
  if (!force && existsSync(file))
    throw new OperatorError(`${file} is there already: --force overwrites it, --out NAME writes another one`)
  const missing = questions.filter(({ name, fallback }) => given[name] === undefined && fallback === undefined)
  if (missing.length > 0 && terminal.ask === undefined) {
    const wanted = missing.map((question) => `  ${optionOf(question)} ${question.example}\n`).join('')
    terminal.err(`gatehouse: nobody can be asked here, so init has to be given, for example:\n${wanted}`)
    return 2
  }
  const answers = await complete(given, terminal)
  write(file, firstFile(answers), force)
  // What is there may be somebody else's, and needs no answer from a person.
  const schemaFile = join(dirname(file), 'gateway.schema.json')
  if (force || !existsSync(schemaFile)) write(schemaFile, schemaText(), force)
  return conclude(file, answers, terminal)
}

/** What came to be there while people were asked is not overwritten either. */
function write(file: string, text: string, force: boolean): void {
  try {
    writeFileSync(file, text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    throw new OperatorError(`${file} cannot be written: ${reason(error)}`, { cause: error })
  }
}

async function complete(given: Partial<Answers>, terminal: Terminal): Promise<Answers> {
  const answers: Record<string, string> = { ...given }
  for (const question of questions) answers[question.name] ??= await answerTo(question, terminal)
  return answers as unknown as Answers
}

/**
 * Asks until the answer is a good one. Where nobody can be asked, it is the one that is taken when
 * nothing is answered.
 */
async function answerTo(question: Question, { ask, out, paintOut = plainly }: Terminal): Promise<string> {
  const { text, example, fallback = '' } = question
  if (ask === undefined) return fallback
  const hint = fallback === '' ? `such as ${example}` : `${fallback} when nothing is answered`
  for (;;) {
    out(`${paintOut('bold', text)}\n`)
    const answer = (await ask(`  (${hint}) > `)).trim() || fallback
    const why = wrong(question, answer)
    if (why === undefined) return answer
    out(`  ${paintOut('red', why)}\n`)
  }
}

/**
 * Says what to do next; what was written is looked at as `check` would, with secrets that are made
 * up.
 */
function conclude(file: string, answers: Answers, terminal: Terminal): number {
  const { out, err, paintOut = plainly, paintErr } = terminal
  const madeUp = { CLIENT_SECRET: 'made up for a look at the file', SESSION_KEY: Buffer.alloc(32).toString('base64') }
  const loaded = loadConfig(file, madeUp)
  const diagnostics = loaded.ok ? loaded.warnings : loaded.diagnostics
  if (diagnostics.length > 0) err(`${shownDiagnostics(diagnostics, loaded.sources, paintErr)}\n`)
  if (!loaded.ok) {
    err(`gatehouse: ${file} is written, and not good yet: mend what is said above\n`)
    return 1
  }
  const named = file === 'gateway.yaml' ? '' : ` --config ${file}`
  const gatehouse = calledAs(terminal)
  const next = [
    ...exportsFor(answers),
    `${gatehouse} check${named}    # what is wrong with the file`,
    `${gatehouse} doctor${named}   # what is wrong with everything around it`,
    `${gatehouse} run${named}      # serve`,
  ]
  out(
    `${paintOut('green', `${file} is written.`)}\n\n${registrationText(loaded.config)}\n` +
      `Then:\n${next.map((line) => `  ${line}\n`).join('')}`,
  )
  return 0
}
