import { examine, type SubjectFindings } from '../../packages/doctor/examine.ts'
import type { Finding } from '../../packages/doctor/finding.ts'
import { registrationsOf, registrationsText } from '../config/registration.ts'
import { printable } from '../core/errors.ts'
import {
  type CommandInput,
  configOption,
  fileHint,
  formatOption,
  isJson,
  jsonText,
  reader,
  readOptions,
  takeNone,
} from './command.ts'
import { readClaims } from './given-file.ts'
import { loadAndReport } from './load.ts'
import { type Paint, withoutColors } from './paint.ts'

const options = { ...configOption, ...formatOption, as: { type: 'string' } } as const

/** Reads the arguments of `gatehouse doctor`. */
export const readDoctorCall = reader((argv) => {
  const { values, positionals } = readOptions(argv, options)
  const asJson = isJson(values.format)
  takeNone(positionals, fileHint)
  return (terminal) => doctor({ ...terminal, file: values.config }, asJson, values.as)
})

/**
 * `gatehouse doctor`: examines the real environment of a gateway. Prints for each finding what it
 * is, why it matters and what to do.
 * @param as a file with the claims of a person, to measure the identity headers
 */
async function doctor(input: CommandInput, asJson: boolean, as: string | undefined): Promise<number> {
  const loaded = loadAndReport(asJson ? { ...input, err: () => {} } : input, 'all')
  if (!loaded.ok) {
    input.err(`${asJson ? '' : '\n'}gatehouse: ${input.file} is invalid${asJson ? '; run gatehouse check' : ''}\n`)
    return 1
  }
  const { config, secretFiles } = loaded
  const claims = as === undefined ? undefined : readClaims(as)
  const examined = await examine({ config, secretFiles, env: input.env, claims })
  const count = countOf(examined)
  input.out(
    asJson
      ? jsonText({ file: input.file, ...count, examined, register: registrationsOf(config) })
      : `${examinedText(examined, input.paintOut ?? withoutColors)}\n${registrationsText(config)}\n${summary(count)}\n`,
  )
  return count.faults > 0 ? 1 : 0
}

interface Count {
  readonly ok: number
  readonly warnings: number
  readonly faults: number
}

function countOf(examined: readonly SubjectFindings[]): Count {
  const levels = examined.flatMap(({ findings }) => findings.map(({ level }) => level))
  const count = (level: Finding['level']) => levels.filter((found) => found === level).length
  return { ok: count('ok'), warnings: count('warning'), faults: count('fault') }
}

function summary({ ok, warnings, faults }: Count): string {
  const many = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
  return `${many(faults, 'fault')}, ${many(warnings, 'warning')}, ${ok} ok`
}

const colors = { ok: 'green', warning: 'yellow', fault: 'red' } as const

function examinedText(examined: readonly SubjectFindings[], paint: Paint): string {
  return examined
    .filter(({ findings }) => findings.length > 0)
    .map(
      ({ subject, findings }) =>
        `${paint('bold', printable(subject))}\n${findings.map((finding) => findingText(finding, paint)).join('')}`,
    )
    .join('\n')
}

function findingText({ level, what, why, todo }: Finding, paint: Paint): string {
  const line = (text: string | undefined, label: string) =>
    text === undefined ? '' : `${' '.repeat(10)}${paint('grey', label)} ${printable(text)}\n`
  return `  ${paint(colors[level], level.padEnd(7))} ${printable(what)}\n${line(why, 'why  ')}${line(todo, 'to do')}`
}
