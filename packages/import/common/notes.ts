/** A note about an option. */
export interface Note {
  readonly option: string
  /**
   * `decide`: an operator must decide before the file is used. `lost`: not supported. `changed`:
   * translated with a difference. `unneeded`: the gateway needs no such setting.
   */
  readonly level: 'decide' | 'lost' | 'changed' | 'unneeded'
  readonly text: string
}

export const levels: readonly Note['level'][] = ['decide', 'lost', 'changed', 'unneeded']

/** Notes about the options of another gateway. A note that is repeated is kept once. */
export class Notes {
  readonly #notes = new Map<string, Note>()
  /** Why the file denies all people until an operator decides. */
  readonly denials: string[] = []

  /** Open decisions first. */
  get notes(): readonly Note[] {
    return [...this.#notes.values()].toSorted((one, other) => levels.indexOf(one.level) - levels.indexOf(other.level))
  }

  decide(option: string, text: string): void {
    this.note({ option, level: 'decide', text })
  }

  lost(option: string, text: string): void {
    this.note({ option, level: 'lost', text })
  }

  changed(option: string, text: string): void {
    this.note({ option, level: 'changed', text })
  }

  unneeded(option: string, text: string): void {
    this.note({ option, level: 'unneeded', text })
  }

  /**
   * Notes why an option has no setting here. One that is unknown, or that an operator has to decide
   * about, denies all people until then.
   */
  untranslated(option: string, known: Untranslated | undefined): void {
    if (known?.level === 'decide') this.deny(option, known.why)
    else if (known !== undefined) this.note({ option, level: known.level, text: known.why })
    else this.deny(option, 'it is unknown and may have restricted access; find out what it did')
  }

  note(note: Note): void {
    this.#notes.set(`${note.option}\0${note.text}`, note)
  }

  /** Notes a decision. Until an operator has taken it, the file denies all people. */
  deny(option: string, text: string): void {
    this.decide(option, `${text}; until then the file denies all people`)
    const reason = `${option}: ${text}`
    if (!this.denials.includes(reason)) this.denials.push(reason)
  }
}

interface Untranslated {
  readonly level: Note['level']
  readonly why: string
}

/** Notes for options that have no setting here: reasons by names, which spaces separate. */
export type WithoutTranslation = ReadonlyMap<string, Untranslated>

export function withoutTranslationOf(
  levelled: Partial<Readonly<Record<Note['level'], Readonly<Record<string, string>>>>>,
): WithoutTranslation {
  return new Map(
    levels.flatMap((level) =>
      Object.entries(levelled[level] ?? {}).flatMap(([names, why]) =>
        names.split(' ').map((name) => [name, { level, why }] as const),
      ),
    ),
  )
}

/** What to write for a service that the other program uses without ID Tokens. */
export function withoutIdTokens(provider: string): string {
  return `${provider} is used without ID Tokens: write provider as in docs/providers/oauth2.md (kind: oauth2), or use an OpenID Provider that signs people in with ${provider}`
}
