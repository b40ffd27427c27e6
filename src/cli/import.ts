import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { levels } from '../../packages/import/common/notes.ts'
import type { Translated } from '../../packages/import/common/translated-file.ts'
import type { GivenText } from '../../packages/import/common/written-config.ts'
import { type Program, programs, type Told } from '../../packages/import/programs.ts'
import { parseOrigin } from '../config/addresses.ts'
import { didYouMean } from '../config/document/did-you-mean.ts'
import { OperatorError, printable } from '../core/errors.ts'
import { CallFault, commandPrefix, faultOf, reader, readOptions, type Terminal } from './command.ts'
import { displayName, readText, writeText } from './given-file.ts'
import { type Paint, withoutColors } from './paint.ts'

/** The arguments of `gatehouse import`. */
interface ImportTask extends Told {
  readonly program: Program
  /** Files with options; `-` is standard input. */
  readonly files: readonly string[]
  /** The file to write; `undefined`: standard output. */
  readonly target: string | undefined
  /** Overwrite an existing file. */
  readonly force: boolean
}

type ProgramName = keyof typeof programs

const options = {
  url: { type: 'string' },
  service: { type: 'string' },
  out: { type: 'string', short: 'o' },
  force: { type: 'boolean', default: false },
} as const

/** Reads the arguments of `gatehouse import`. */
export const readImportCall = reader((argv) => {
  const end = argv.indexOf('--')
  const { values, positionals } = readOptions(end < 0 ? argv : argv.slice(0, end), options)
  const args = end < 0 ? [] : argv.slice(end + 1)
  const [from, ...files] = positionals
  if (from === undefined || !isKnown(from)) throw new CallFault(unknownProgram(from))
  if (files.length === 0 && args.length === 0)
    throw new CallFault(`import ${from} needs a configuration file (- is standard input), or flags after --`)
  const { url, service, out: target, force } = values
  const fault = faultOf(parseOrigin, url)
  if (fault !== undefined) throw new CallFault(`--url: ${fault}`)
  return async (terminal) =>
    importFiles({ program: programs[from], files, args, service, url, target, force }, terminal)
})

function unknownProgram(name: string | undefined): string {
  const known = Object.keys(programs)
  if (name === undefined)
    return `import needs the name of a program and its files, such as import oauth2-proxy FILE. Known: ${known.join(', ')}`
  const meant = didYouMean(name, known)
  return `import: unknown program "${printable(name)}"; ${meant === undefined ? `known: ${known.join(', ')}` : `did you mean "${meant}"?`}`
}

function isKnown(name: string): name is ProgramName {
  return Object.hasOwn(programs, name)
}

/**
 * `gatehouse import`: translates a configuration of another program, and prints notes about what is
 * different.
 * @throws {OperatorError} when a file cannot be read or written; the message quotes none of its
 * content
 */
function importFiles(task: ImportTask, terminal: Terminal): number {
  const { program, target, force } = task
  if (target !== undefined && existsSync(target) && !force)
    throw new OperatorError(`${target} exists already; --force overwrites it`)
  const { yaml, notes } = translated(task)
  if (target === undefined) terminal.out(yaml)
  else writeText(target, yaml, force)
  terminal.err(notesText(notes, terminal.paintErr ?? withoutColors))
  terminal.err(
    `Only what was given is translated. Give import ${program.elsewhere} too.\n` +
      `Review the result, then run: ${commandPrefix(terminal)} check --config ${target ?? 'FILE'}\n`,
  )
  return 0
}

function translated(task: ImportTask): Translated {
  const texts = task.files.map(givenText)
  try {
    return task.program.translate(texts, task)
  } catch (error) {
    if (error instanceof SyntaxError) throw new OperatorError(error.message)
    throw error
  }
}

function givenText(file: string): GivenText {
  const beside = (path: string) => {
    const other = join(dirname(file), path)
    return file === '-' || !existsSync(other) ? undefined : readText(other)
  }
  return { name: displayName(file), text: readText(file).replace(/^\ufeff/, ''), beside }
}

const titles = {
  decide: 'Decide before use',
  lost: 'Not translated',
  changed: 'Translated with a difference',
  unneeded: 'Not needed',
} as const
const colors = { decide: 'red', lost: 'yellow', changed: 'cyan', unneeded: 'grey' } as const

function notesText(notes: Translated['notes'], paint: Paint): string {
  return levels
    .map((level) => {
      const lines = notes
        .filter((note) => note.level === level)
        .map(({ option, text }) => `  ${paint(colors[level], printable(option))}: ${printable(text)}\n`)
      return lines.length === 0 ? '' : `${paint('bold', titles[level])}\n${lines.join('')}\n`
    })
    .join('')
}
