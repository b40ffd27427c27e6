import type { Options } from './flat-toml.ts'

/** What there is to say of an option. */
export interface Note {
  readonly option: string
  /**
   * `decide`: the file is not finished without a decision; `lost`: there is no such thing here;
   * `changed`: translated, and something is otherwise; `unneeded`: nothing is missing without it.
   */
  readonly level: 'decide' | 'lost' | 'changed' | 'unneeded'
  readonly text: string
}

/** The options of another gateway as they are taken one by one, and what is noted on the way. */
export class Translation {
  readonly notes: Note[] = []
  readonly #options: Options
  readonly #taken = new Set<string>()

  constructor(options: Options) {
    this.#options = options
  }

  /** The value of an option; an empty one is none. */
  text(option: string): string | undefined {
    const text = this.list(option).join(',')
    return text === '' ? undefined : text
  }

  /** The members of an option, which may be one text with commas. */
  list(option: string): readonly string[] {
    this.#taken.add(option)
    const value = this.#options.get(option) ?? []
    const members = typeof value === 'string' ? value.split(',') : value
    return members.map((member) => member.trim()).filter((member) => member !== '')
  }

  isOn(option: string, otherwise = false): boolean {
    return (this.text(option) ?? String(otherwise)).toLowerCase() === 'true'
  }

  /** Whether it was switched off, or says nothing. It is not taken by that. */
  isOff(option: string): boolean {
    const value = this.#options.get(option) ?? ''
    return value === 'false' || value.length === 0
  }

  note(option: string, level: Note['level'], text: string): void {
    this.notes.push({ option, level, text })
  }

  /** What nobody has taken. */
  get rest(): readonly string[] {
    return [...this.#options.keys()].filter((option) => !this.#taken.has(option))
  }
}
