import { placeholder } from '../../../src/entries/import.ts'
import type { Options } from './flat-toml.ts'
import { Notes } from './notes.ts'

/** The options of another gateway. Records which options were read, and notes about them. */
export class Translation extends Notes {
  readonly #options: Options
  readonly #read = new Set<string>()

  constructor(options: Options) {
    super()
    this.#options = options
  }

  /** The value of an option; `undefined` when it is missing or empty. */
  text(option: string): string | undefined {
    const text = this.list(option).join(',').trim()
    return text === '' ? undefined : text
  }

  /**
   * The members of an option: a list, or one text with commas. Spaces around a member stay, because
   * oauth2-proxy compares it with them.
   */
  list(option: string): readonly string[] {
    this.#read.add(option)
    const value = this.#options.get(option) ?? []
    const members = typeof value === 'string' ? value.split(',') : value
    return members.filter((member) => member.trim() !== '')
  }

  isOn(option: string, fallback = false): boolean {
    return (this.text(option) ?? String(fallback)).toLowerCase() === 'true'
  }

  /** Whether an option is off or empty. Does not count as reading the option. */
  isOff(option: string): boolean {
    return this.#options.get(option) === 'false' || this.isEmpty(option)
  }

  /** Whether an option is missing or empty. Does not count as reading the option. */
  isEmpty(option: string): boolean {
    return (this.#options.get(option) ?? '').length === 0
  }

  /** The options that are given. */
  get names(): Iterable<string> {
    return this.#options.keys()
  }

  /** The options that were not read. */
  get rest(): readonly string[] {
    return [...this.#options.keys()].filter((option) => !this.#read.has(option))
  }
}

const template = /\$[{(]\w|\{\{|^\$[A-Z_]\w*$/

/**
 * A translation without the options whose value another program fills in, because it is unknown.
 * @param isSecret whether an option is a secret, which no file contains
 * @param isAsked whether a missing value is asked for, and restricts nothing
 */
export function translationOf(
  options: Options,
  isSecret = (option: string) => /secret|_key$/.test(option),
  isAsked = (_option: string) => false,
): Translation {
  const isUnknown = (option: string, value: string | readonly string[]) =>
    !isSecret(option) && [value].flat().some((member) => template.test(member))
  const known = [...options].flatMap(([option, value]): (readonly [string, string | readonly string[]])[] => {
    if (!isUnknown(option, value)) return [[option, value]]
    return isAsked(option) ? [[option, placeholder]] : []
  })
  const from = new Translation(new Map(known))
  for (const [option, value] of options)
    if (isUnknown(option, value) && !isAsked(option))
      from.deny(
        option,
        'the value is a variable such as ${NAME}, which is unknown here; import the file with its values',
      )
  return from
}
