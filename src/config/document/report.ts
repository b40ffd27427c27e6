import type { Diagnostic } from './diagnostics.ts'
import { stampOf } from './files.ts'
import { type Place, Sources } from './sources.ts'

/** The place of a setting. */
export interface Entry {
  readonly key: Place
  readonly value: Place
  readonly isList: boolean
  /**
   * The source text of a number, `true` or `null`, so that a hint can say how to write it as text.
   */
  readonly typed?: string
  /** The name of the setting is not written: `/logout` stands for `{ path: /logout }`. */
  readonly isImplied?: true
}

/** A file that contains a secret, and the setting that names it. */
export interface SecretFile {
  readonly setting: string
  readonly file: string
}

/**
 * The pointer (RFC 6901, `/upstreams/orders/rules/0`) of the member `name` of the map or list at
 * `at`.
 */
export function below(at: string, name: string | number): string {
  const text = String(name)
  return `${at}/${/[~/]/.test(text) ? text.replaceAll('~', '~0').replaceAll('/', '~1') : text}`
}

/** The names that a pointer consists of. */
export function namesOf(at: string): string[] {
  return at
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The pointers of all maps and lists that contain a setting. */
export function containersOf(at: string): string[] {
  const containers: string[] = []
  for (let end = at.lastIndexOf('/'); end >= 0; end = at.lastIndexOf('/', end - 1)) {
    containers.push(at.slice(0, end))
    if (end === 0) break
  }
  return containers
}

function parentOf(at: string): string {
  return at.slice(0, Math.max(0, at.lastIndexOf('/')))
}

/**
 * Collects diagnostics about a configuration, and knows the place of each setting.
 */
export class Report {
  /** The files that were read. */
  readonly sources = new Sources()
  readonly #file: string
  readonly #entries = new Map<string, Entry>()
  readonly #diagnostics: Diagnostic[] = []
  readonly #invalid = new Set<string>()
  /** All maps and lists that contain an invalid setting. */
  readonly #withInvalid = new Set<string>()
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
   * The files and folders that the configuration depends on, existing or not, each with its stamp
   * from before it was read.
   */
  get files(): ReadonlyMap<string, string> {
    return this.#files
  }

  /**
   * Records the stamp of a file. Call this before reading it, so that a later change is noticed.
   */
  recordFile(file: string): void {
    if (!this.#files.has(file)) this.#files.set(file, stampOf(file))
  }

  /** In the order of the file. Included files come after the file that includes them. */
  get diagnostics(): readonly Diagnostic[] {
    const files = [...new Set([this.#file, ...this.#diagnostics.map(({ file }) => file)])]
    const rank = new Map(files.map((file, index) => [file, index]))
    const rankOf = ({ file }: Diagnostic) => rank.get(file) ?? 0
    return this.#diagnostics.toSorted((a, b) => rankOf(a) - rankOf(b) || a.line - b.line || a.column - b.column)
  }

  /**
   * Records the place of a setting. Several files can contribute to one map: the first place
   * counts.
   */
  add(at: string, entry: Entry): void {
    if (!this.#entries.has(at)) this.#entries.set(at, entry)
  }

  /** Records that the value at `of` is the short form of a map with the setting `at`. */
  addShortForm(at: string, of: string): void {
    const entry = this.#entries.get(of)
    if (entry !== undefined) this.add(at, { ...entry, isImplied: true })
  }

  error(at: string, message: string, hint?: string): void {
    this.#addInvalid(at)
    this.#record('error', this.#placeOf(at, 'value'), at, message, hint)
  }

  /**
   * Reports an error at the name of a setting: the name is invalid, or something is missing below
   * it.
   */
  errorAtKey(at: string, message: string, hint?: string): void {
    this.#addInvalid(at)
    this.#record('error', this.#placeOf(at, 'key'), at, message, hint)
  }

  /** Reports a missing setting, at the name of the map that should contain it. */
  missing(at: string, message: string, hint?: string): void {
    // A setting of the wrong type is absent from what was read, but not from the file. What a map
    // lacks that is missing itself is not reported.
    const map = parentOf(at)
    if (this.isReported(at) || (map !== '' && this.#invalid.has(map))) return
    this.#addInvalid(at)
    this.#record('error', this.#placeOf(parentOf(at), 'key'), at, message, hint)
  }

  /** Suppresses further errors about a setting, because another diagnostic covers it. */
  markReported(at: string): void {
    this.#addInvalid(at)
  }

  warning(at: string, message: string, hint?: string): void {
    this.#record('warning', this.#placeOf(at, 'value'), at, message, hint)
  }

  warningAtPlace(place: Place, at: string, message: string, hint?: string): void {
    this.#record('warning', place, at, message, hint)
  }

  /** Reports an error at a place in a file. */
  errorAtPlace(place: Place, at: string, message: string, hint?: string): void {
    this.#addInvalid(at)
    this.#record('error', place, at, message, hint)
  }

  /**
   * Calls `read` and reports a SyntaxError of it. Returns `fallback` then, so that the rest can be
   * checked too.
   */
  parse<T>(at: string, fallback: T, read: () => T, hint?: string): T {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      this.error(at, error.message, hint)
      return fallback
    }
  }

  isSet(at: string): boolean {
    return this.#entries.has(at)
  }

  /** The source text of a number, `true` or `null`. */
  typedAt(at: string): string | undefined {
    return this.#entries.get(at)?.typed
  }

  /**
   * Whether there is no error at these settings, above them or below them.
   */
  isValid(...settings: readonly string[]): boolean {
    return settings.every(
      (at) => !this.isReported(at) && !containersOf(at).some((container) => this.#invalid.has(container)),
    )
  }

  /** Whether an error was reported for this setting or below it. */
  isReported(at: string): boolean {
    return this.#invalid.has(at) || this.#withInvalid.has(at)
  }

  keyPlace(at: string): Place {
    return this.#placeOf(at, 'key')
  }

  /** A pointer in the form of messages: `upstreams.orders.rules[0]`. */
  pathText(at: string): string {
    let text = ''
    let container = ''
    for (const name of namesOf(at)) {
      const isMember = this.#entries.get(container)?.isList === true
      container = below(container, name)
      if (this.#entries.get(container)?.isImplied) continue
      if (isMember) text += `[${name}]`
      else text += `${text === '' ? '' : '.'}${/^[\w-]{1,128}$/.test(name) ? name : quoted(name)}`
    }
    return text
  }

  #addInvalid(at: string): void {
    this.#invalid.add(at)
    for (const container of containersOf(at)) this.#withInvalid.add(container)
  }

  #record(severity: Diagnostic['severity'], place: Place, at: string, message: string, hint: string | undefined): void {
    const path = this.pathText(at)
    this.#diagnostics.push({ severity, ...place, path, message, ...(hint === undefined ? {} : { hint }) })
  }

  /** The place of a setting. One that is not set has the place of the nearest map above it. */
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
