import { type Diagnostic, type Place, Sources } from './diagnostics.ts'
import { stampOf } from './files.ts'
import { hintForSource, isTemplate } from './spellings.ts'

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The place of a setting. */
export interface SettingPlace {
  readonly key: Place
  readonly value: Place
  readonly isList: boolean
  /** The source text of a number, `true` or `null`, for a hint how to write it as text. */
  readonly typed?: string
  /** The name of the setting is not written: `/logout` means `{ path: /logout }`. */
  readonly isImplied?: true
}

/** A file that contains a secret, and the setting that names it. */
export interface SecretFile {
  readonly setting: string
  readonly file: string
}

/** The pointer (RFC 6901, `/upstreams/orders/rules/0`) of a member of the map or list at `at`. */
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

/** Collects diagnostics about a configuration, and knows the place of each setting. */
export class Report {
  /** The variables that the configuration may name. */
  readonly env: Environment
  /** The client secret need not exist yet. */
  readonly isUnregistered: boolean
  /** Credentials that systemd shows to its service only may be missing. */
  readonly isBeforeStart: boolean
  /** The files that were read. */
  readonly sources = new Sources()
  /** The files that hold secrets. */
  readonly secretFiles: SecretFile[] = []
  readonly #file: string
  readonly #entries = new Map<string, SettingPlace>()
  readonly #diagnostics: Diagnostic[] = []
  readonly #invalid = new Set<string>()
  /** All maps and lists that contain an invalid setting. */
  readonly #withInvalid = new Set<string>()
  readonly #files = new Map<string, string>()

  constructor(
    file: string,
    env: Environment,
    { isUnregistered = false, isBeforeStart = false }: Partial<Pick<Report, 'isUnregistered' | 'isBeforeStart'>> = {},
  ) {
    this.#file = file
    this.env = env
    this.isUnregistered = isUnregistered
    this.isBeforeStart = isBeforeStart
  }

  /** The setting at a pointer; `''` is the whole file. */
  at(pointer: string): Setting {
    return new Setting(this, pointer)
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

  /** Records the stamp of a file. Call this before reading it, to notice later changes. */
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

  /** Several files can contribute to one map: the first place counts. */
  addEntry(at: string, entry: SettingPlace): void {
    if (!this.#entries.has(at)) this.#entries.set(at, entry)
  }

  entry(at: string): SettingPlace | undefined {
    return this.#entries.get(at)
  }

  /**
   * The settings whose value is a template that was not filled in, and that nothing is said about.
   */
  get unfilled(): readonly Setting[] {
    const reported = new Set(this.#diagnostics.map(({ path }) => path))
    return [...this.#entries]
      .filter(([, { value, isImplied }]) => !isImplied && isTemplate(this.sources.textFrom(value)))
      .map(([pointer]) => this.at(pointer))
      .filter((setting) => setting.isValid && !reported.has(setting.path))
  }

  record(
    severity: Diagnostic['severity'],
    place: Place,
    path: string,
    message: string,
    hint: string | undefined,
  ): void {
    this.#diagnostics.push({ severity, ...place, path, message, ...(hint === undefined ? {} : { hint }) })
  }

  addInvalid(at: string): void {
    this.#invalid.add(at)
    for (const container of containersOf(at)) this.#withInvalid.add(container)
  }

  isInvalid(at: string): boolean {
    return this.#invalid.has(at)
  }

  containsInvalid(at: string): boolean {
    return this.#withInvalid.has(at)
  }

  /** The place of a setting. One that is not set has the place of the nearest map above it. */
  placeOf(at: string, part: 'key' | 'value'): Place {
    const entry = this.#entries.get(at)
    if (entry) return entry[part]
    if (at === '') return { file: this.#file, line: 1, column: 1 }
    return this.placeOf(parentOf(at), 'key')
  }
}

/** A setting by its place in the configuration. It need not be set. */
export class Setting {
  readonly report: Report
  /** RFC 6901: `/upstreams/orders/rules/0`. */
  readonly pointer: string

  constructor(report: Report, pointer: string) {
    this.report = report
    this.pointer = pointer
  }

  /** The setting that these names and indexes lead to, from this map or list. */
  below(...names: readonly (string | number)[]): Setting {
    return new Setting(this.report, names.reduce<string>(below, this.pointer))
  }

  /** Records where the setting is in a file. */
  addPlace(entry: SettingPlace): void {
    this.report.addEntry(this.pointer, entry)
  }

  /** Records that the value of this setting is the short form of a map with the setting `name`. */
  addShortForm(name: string): void {
    const entry = this.report.entry(this.pointer)
    if (entry !== undefined) this.below(name).addPlace({ ...entry, isImplied: true })
  }

  error(message: string, hint?: string): void {
    const place = this.report.placeOf(this.pointer, 'value')
    const source = this.isSet ? this.report.sources.textFrom(place) : ''
    this.errorAtPlace(place, message, hint ?? hintForSource(source))
  }

  /** Reports an error at the name: the name is invalid, or something is missing below it. */
  errorAtKey(message: string, hint?: string): void {
    this.errorAtPlace(this.place, message, hint)
  }

  /** Reports an error at a place in a file. */
  errorAtPlace(place: Place, message: string, hint?: string): void {
    this.markReported()
    this.report.record('error', place, this.path, message, hint)
  }

  /** Reports that the setting is missing, at the name of the map that should contain it. */
  missing(message: string, hint?: string): void {
    // A setting of the wrong type is absent from what was read, but not from the file. What a map
    // lacks that is missing itself is not reported.
    const map = parentOf(this.pointer)
    if (this.isReported || (map !== '' && this.report.isInvalid(map))) return
    this.errorAtPlace(this.report.placeOf(map, 'key'), message, hint)
  }

  /** Suppresses further errors about the setting, because another diagnostic covers it. */
  markReported(): void {
    this.report.addInvalid(this.pointer)
  }

  warning(message: string, hint?: string): void {
    this.warningAtPlace(this.report.placeOf(this.pointer, 'value'), message, hint)
  }

  warningAtPlace(place: Place, message: string, hint?: string): void {
    this.report.record('warning', place, this.path, message, hint)
  }

  /** What `read` makes of a value that is set. Reports a SyntaxError, and returns `undefined`. */
  parse<T, V>(written: T | undefined, read: (written: T) => V, hint?: string): V | undefined {
    try {
      return written === undefined ? undefined : read(written)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      this.error(error.message, hint)
      return undefined
    }
  }

  get isSet(): boolean {
    return this.report.entry(this.pointer) !== undefined
  }

  /** The source text of a number, `true` or `null`. */
  get typed(): string | undefined {
    return this.report.entry(this.pointer)?.typed
  }

  /** Whether there is no error at this setting, above it or below it. */
  get isValid(): boolean {
    return !this.isReported && !containersOf(this.pointer).some((container) => this.report.isInvalid(container))
  }

  /** Whether an error was reported for this setting or below it. */
  get isReported(): boolean {
    return this.report.isInvalid(this.pointer) || this.report.containsInvalid(this.pointer)
  }

  /** Where its name is. */
  get place(): Place {
    return this.report.placeOf(this.pointer, 'key')
  }

  /** Its name in messages: `upstreams.orders.rules[0]`. */
  get path(): string {
    let text = ''
    let container = ''
    for (const name of namesOf(this.pointer)) {
      const isMember = this.report.entry(container)?.isList === true
      container = below(container, name)
      if (this.report.entry(container)?.isImplied) continue
      if (isMember) text += `[${name}]`
      else text += `${text === '' ? '' : '.'}${/^[\w-]{1,128}$/.test(name) ? name : quoted(name)}`
    }
    return text
  }
}

/** Whether there is no error at these settings, above them or below them. */
export function areValid(...settings: readonly Setting[]): boolean {
  return settings.every(({ isValid }) => isValid)
}

function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)
}
