import type { Diagnostic } from './diagnostics.ts'
import { stampOf } from './files.ts'
import { type Place, Sources } from './sources.ts'

/** Where a setting was written. */
export interface Entry {
  readonly key: Place
  readonly value: Place
  readonly isList: boolean
  /**
   * A number, `true` or `null` exactly as it was typed, so that a message can say how to write it
   * as text.
   */
  readonly typed?: string
}

/** A file with a secret in it, and the setting that names it. */
export interface SecretFile {
  readonly setting: string
  readonly file: string
}

/**
 * The pointer (RFC 6901, `/upstreams/orders/rules/0`) of what stands under `name` in the map or
 * list at a pointer.
 */
export function below(at: string, name: string | number): string {
  return `${at}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** The names that lead from the root to a pointer. */
export function namesOf(at: string): string[] {
  return at
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function parentOf(at: string): string {
  return at.slice(0, Math.max(0, at.lastIndexOf('/')))
}

/**
 * Collects what is to be said about a configuration, and knows where each of its settings stands.
 */
export class Report {
  /** What has been read. */
  readonly sources = new Sources()
  readonly #file: string
  readonly #entries = new Map<string, Entry>()
  readonly #diagnostics: Diagnostic[] = []
  readonly #broken = new Set<string>()
  readonly #files = new Map<string, string>()
  /** The files that hold secrets. */
  readonly secretFiles: SecretFile[] = []

  constructor(file: string) {
    this.#file = file
  }

  get hasErrors(): boolean {
    return this.#diagnostics.some(({ severity }) => severity === 'error')
  }

  /**
   * The files and folders that were looked at, whether they are there or not, with their stamps
   * from before that.
   */
  get files(): ReadonlyMap<string, string> {
    return this.#files
  }

  /**
   * To be called before it is read: what changes in between must not be taken for what was read.
   */
  looksAt(file: string): void {
    if (!this.#files.has(file)) this.#files.set(file, stampOf(file))
  }

  /** In the order of the file; included files come after the one that includes them. */
  get diagnostics(): readonly Diagnostic[] {
    const files = [...new Set([this.#file, ...this.#diagnostics.map(({ file }) => file)])]
    return this.#diagnostics.toSorted(
      (a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line || a.column - b.column,
    )
  }

  /** The files that are included all add to one map: its place is where it stands first. */
  add(at: string, entry: Entry): void {
    if (!this.#entries.has(at)) this.#entries.set(at, entry)
  }

  error(at: string, message: string, hint?: string): void {
    this.#broken.add(at)
    this.#say('error', this.#placeOf(at, 'value'), at, message, hint)
  }

  /** For what is wrong with the name of a setting, or with what is missing below it. */
  errorAtKey(at: string, message: string, hint?: string): void {
    this.#broken.add(at)
    this.#say('error', this.#placeOf(at, 'key'), at, message, hint)
  }

  /** For a setting that is not there: it belongs below the nearest one that is. */
  missing(at: string, message: string, hint?: string): void {
    this.#broken.add(at)
    this.#say('error', this.#placeOf(parentOf(at), 'key'), at, message, hint)
  }

  /** For what has been told elsewhere: nothing more is to be said of it. */
  giveUp(at: string): void {
    this.#broken.add(at)
  }

  warning(at: string, message: string, hint?: string): void {
    this.#say('warning', this.#placeOf(at, 'value'), at, message, hint)
  }

  warningAtPlace(place: Place, at: string, message: string, hint?: string): void {
    this.#say('warning', place, at, message, hint)
  }

  /** For what is wrong with the text of a file, whichever setting it is about. */
  errorAtPlace(place: Place, at: string, message: string, hint?: string): void {
    this.#broken.add(at)
    this.#say('error', place, at, message, hint)
  }

  /**
   * Reads what is written at a pointer; a SyntaxError becomes its diagnostic, and the stand-in lets
   * the rest be read too.
   */
  parse<T>(at: string, standIn: T, read: () => T, hint?: string): T {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      this.error(at, error.message, hint)
      return standIn
    }
  }

  wasWritten(at: string): boolean {
    return this.#entries.has(at)
  }

  /** What was typed there, when it is a number, `true` or `null`. */
  typedAt(at: string): string | undefined {
    return this.#entries.get(at)?.typed
  }

  /**
   * No error was found at these settings, in what they are part of, nor in what is part of them.
   */
  isSound(...settings: readonly string[]): boolean {
    return settings.every((at) =>
      [...this.#broken].every(
        (broken) => broken !== at && !at.startsWith(`${broken}/`) && !broken.startsWith(`${at}/`),
      ),
    )
  }

  /** An error has been told of this very setting, or of a part of it. */
  isTold(at: string): boolean {
    return [...this.#broken].some((broken) => broken === at || broken.startsWith(`${at}/`))
  }

  keyPlace(at: string): Place {
    return this.#placeOf(at, 'key')
  }

  /** A pointer as people write it: `upstreams.orders.rules[0]`. */
  pathText(at: string): string {
    let text = ''
    let container = ''
    for (const name of namesOf(at)) {
      if (this.#entries.get(container)?.isList) text += `[${name}]`
      else text += `${text === '' ? '' : '.'}${/^[\w-]{1,128}$/.test(name) ? name : quoted(name)}`
      container = below(container, name)
    }
    return text
  }

  #say(severity: Diagnostic['severity'], place: Place, at: string, message: string, hint: string | undefined): void {
    const path = this.pathText(at)
    this.#diagnostics.push({ severity, ...place, path, message, ...(hint === undefined ? {} : { hint }) })
  }

  /** A setting that was not written, but left to its default, is sought where it would stand. */
  #placeOf(at: string, part: 'key' | 'value'): Place {
    const entry = this.#entries.get(at)
    if (entry) return entry[part]
    if (at === '') return { file: this.#file, line: 1, column: 1 }
    return this.#placeOf(parentOf(at), 'key')
  }
}

function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)
}
