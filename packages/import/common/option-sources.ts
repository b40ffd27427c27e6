import { isObject, type JsonObject } from '../../../src/entries/import.ts'
import type { Options } from './flat-toml.ts'
import { eachNamed, type GivenText } from './written-config.ts'
import { yamlMap } from './yaml-map.ts'

/** The kinds of sources. A later kind replaces the options of an earlier one. */
type Kind = 'file' | 'environment' | 'arguments'

export interface Source {
  readonly kind: Kind
  readonly options: Options
}

/** How a program is configured. */
export interface Dialect {
  readonly program: string
  /** Matches the image of its container. */
  readonly image: RegExp
  /** The option that an environment variable sets. */
  readonly optionOf: (variable: string) => string | undefined
  /** The option that a flag sets, and whether a repeated flag is a list. */
  readonly flagOf: (name: string) => { readonly option: string; readonly isList: boolean }
  /** Reads its own file. @throws {SyntaxError} */
  readonly readFile: (text: string) => Options
  /** The sources in a YAML document that is neither of Compose nor of Kubernetes. */
  readonly readDocument: (document: JsonObject) => readonly Source[]
}

/**
 * The options of all texts together, as the program combines them: arguments replace environment
 * variables, and these replace the file. A text may be its file, lines of environment variables, a
 * Compose file with the files that its `env_file` names, or a Kubernetes manifest.
 * @param args arguments of the command line
 * @param service of the Compose file; absent: the one that runs the program
 * @throws {SyntaxError} names the text; the message quotes no value, because it may be a secret
 */
export function readOptions(
  texts: readonly GivenText[],
  args: readonly string[],
  service: string | undefined,
  dialect: Dialect,
): Options {
  const all = [...new SourceReader(texts, service, dialect).read(), argumentsSource(args, dialect)]
  const order: readonly Kind[] = ['file', 'environment', 'arguments']
  return new Map(
    order.flatMap((kind) => all.filter((each) => each.kind === kind).flatMap(({ options }) => [...options])),
  )
}

const isVariable = /^(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*=/
const looksLikeYaml = /^\s*(?:---|["']?[\w.-]+["']?:(?:\s|$))/

/** A service of Compose, or a container of Kubernetes, that may run the program. */
type Container = JsonObject
type Variables = readonly (readonly [name: string, value: string])[]

class SourceReader {
  readonly #texts: readonly GivenText[]
  readonly #service: string | undefined
  readonly #dialect: Dialect
  /**
   * The texts that an `env_file` names. The service has their variables, and they are read there.
   */
  readonly #used = new Set<GivenText>()

  constructor(texts: readonly GivenText[], service: string | undefined, dialect: Dialect) {
    this.#texts = texts
    this.#service = service
    this.#dialect = dialect
  }

  read(): readonly Source[] {
    const read = eachNamed(this.#texts, (text, given) => ({ given, sources: this.#sourcesIn(text, given) }))
    return read.flatMap(({ given, sources }) => (this.#used.has(given) ? [] : sources))
  }

  #sourcesIn(text: string, given: GivenText): readonly Source[] {
    const lines = linesOf(text)
    const [first = ''] = lines
    // The names of options in files are in lower case.
    if (/^\s*(?:export\s+)?[A-Z][A-Z0-9_]*=/.test(first))
      return [environmentSource(readVariables(lines), this.#dialect)]
    if (this.#isCommandLine(first)) return [argumentsSource(wordsOfLines(text), this.#dialect)]
    if (looksLikeYaml.test(first)) return this.#sourcesInYaml(yamlMap(text), given)
    return [{ kind: 'file', options: this.#dialect.readFile(text) }]
  }

  /** The program with its flags, or flags alone, perhaps as a list in YAML. */
  #isCommandLine(line: string): boolean {
    const [program = ''] = line.trim().split(/\s/)
    return (
      /^(?:- *)?["']?--[a-z]/.test(line.trim()) || (program.endsWith(this.#dialect.program) && program !== line.trim())
    )
  }

  #sourcesInYaml(document: JsonObject, given: GivenText): readonly Source[] {
    const { services, kind, spec } = document
    if (isObject(services)) {
      const all = Object.entries(services).flatMap(([name, one]) => (isObject(one) ? [[name, one] as const] : []))
      return this.#sourcesOfContainer(withoutEscapes(this.#chosen(all)), given)
    }
    if (kind === 'HelmRelease' || kind === 'Application') return this.#sourcesOfValues(kind, spec)
    if (kind !== undefined && spec !== undefined)
      return this.#sourcesOfContainer(this.#chosen(containersIn(spec)), given)
    return this.#dialect.readDocument(document)
  }

  /** The values of the chart in a `HelmRelease` of Flux or an `Application` of Argo CD. */
  #sourcesOfValues(kind: string, spec: unknown): readonly Source[] {
    const { values, valuesFrom, source, sources } = isObject(spec) ? spec : {}
    const charts = kind === 'HelmRelease' ? [spec] : [source ?? sources ?? []].flat()
    const isProgram = (chart: unknown) => JSON.stringify(chart ?? '').includes(this.#dialect.program)
    const [chart, ...more] = charts.filter(isProgram)
    if (chart === undefined || more.length > 0)
      throw new SyntaxError(
        `${kind}: ${more.length > 0 ? 'several charts are' : 'no chart is'} that of ${this.#dialect.program}`,
      )
    const helm = kind === 'HelmRelease' ? { values, valuesFrom } : isObject(chart) ? chart['helm'] : {}
    const { values: written, valuesObject, ...others } = isObject(helm) ? helm : {}
    const elsewhere = ['valuesFrom', 'valueFiles', 'parameters', 'fileParameters'].find(
      (name) => others[name] !== undefined,
    )
    if (elsewhere !== undefined)
      throw new SyntaxError(
        `${elsewhere} names values that are not here: give import the values of the chart, as one file`,
      )
    const text = valuesObject ?? written
    const document = typeof text === 'string' ? yamlMap(text) : text
    if (!isObject(document)) throw new SyntaxError(`${kind}: there are no values of the chart`)
    return this.#dialect.readDocument(document)
  }

  #chosen(all: readonly (readonly [name: string, container: Container])[]): Container {
    const [wanted, { program, image: own }] = [this.#service, this.#dialect]
    const isProgram = ([name, { image }]: readonly [string, Container]) =>
      wanted === undefined ? own.test(String(image ?? '')) : name === wanted
    const [found, ...more] = all.filter(isProgram)
    const names = all.map(([name]) => name).join(', ')
    if (found === undefined)
      throw new SyntaxError(
        `no service ${wanted === undefined ? `has an image of ${program}` : `is called ${wanted}`}${names === '' ? ', and there are no services or containers' : `: there are ${names}`}`,
      )
    if (more.length > 0)
      throw new SyntaxError(
        `several services run ${program}: name one with --service: ${[found, ...more].map(([name]) => name).join(', ')}`,
      )
    return found[1]
  }

  /** The variables of `environment` replace those of `env_file`, as in Compose. */
  #sourcesOfContainer(container: Container, given: GivenText): readonly Source[] {
    const { environment, env, env_file, envFrom, command, entrypoint, args } = container
    if (envFrom !== undefined)
      throw new SyntaxError(
        'envFrom names variables that are not here: give import a file with them, and remove envFrom from a copy',
      )
    const files = [env_file ?? []].flat().flatMap((file) => this.#environmentFile(file, given))
    return [
      environmentSource([...files, ...variablesOf(environment), ...variablesOf(env)], this.#dialect),
      argumentsSource([entrypoint, command, args].flatMap(wordsOf), this.#dialect),
    ]
  }

  /**
   * The variables of an entry of `env_file`, from a given text or from the file beside the Compose
   * file.
   */
  #environmentFile(entry: unknown, given: GivenText): Variables {
    const { path, required } = isObject(entry) ? entry : { path: entry, required: true }
    const name = String(path).replace(/^\.\//, '')
    const file = this.#texts.find((text) => text.name === name || text.name.endsWith(`/${name}`))
    if (file !== undefined) this.#used.add(file)
    const text = file?.text ?? given.beside?.(String(path))
    if (text !== undefined) return readVariables(linesOf(text))
    if (required === false) return []
    throw new SyntaxError(`env_file names ${name}, which is not here: give import this file too`)
  }
}

/** In a Compose file, `$$` is a `$`. */
function withoutEscapes(container: Container): Container {
  const unescaped = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replaceAll('$$', '$')
    if (Array.isArray(value)) return value.map(unescaped)
    return isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, unescaped(each)]))
      : value
  }
  return unescaped(container) as Container
}

/** The options in environment variables, without the variables of other programs. */
export function environmentSource(variables: Variables, { optionOf }: Dialect): Source {
  const options = variables.flatMap(([name, value]) => {
    const option = optionOf(name)
    return option === undefined ? [] : [[option, value] as const]
  })
  return { kind: 'environment', options: new Map(options) }
}

/**
 * The options of a command line: `--name=value`, `--name value`, or `--name` for `true`. A flag
 * that is repeated is a list.
 */
export function argumentsSource(args: readonly string[], { flagOf }: Dialect): Source {
  const options = new Map<string, string | readonly string[]>()
  for (let at = 0; at < args.length; at++) {
    const [, flag, attached] = /^--?([A-Za-z][\w.-]*)(?:=(.*))?$/s.exec(args[at] ?? '') ?? []
    // The program itself, or an argument that is no flag.
    if (flag === undefined) continue
    const next = args[at + 1]
    const isSeparate = attached === undefined && next !== undefined && !next.startsWith('-')
    if (isSeparate) at += 1
    const value = attached ?? (isSeparate ? next : 'true')
    const { option, isList } = flagOf(flag.toLowerCase())
    const earlier = options.get(option)
    options.set(option, isList && earlier !== undefined ? [...[earlier].flat(), value].flatMap(members) : value)
  }
  return { kind: 'arguments', options }
}

function linesOf(text: string): readonly string[] {
  return text.split(/\r?\n/).filter((line) => /^\s*[^\s#]/.test(line))
}

/** The words of a command over several lines. */
function wordsOfLines(text: string): readonly string[] {
  const lines = text.split(/\r?\n/).map((line) => line.replace(/^\s*- +|\\\s*$/g, ''))
  return wordsOf(lines.filter((line) => !/^\s*#/.test(line)).join(' '))
}

/** The variables in lines `NAME=VALUE`, as in a file of environment variables. */
function readVariables(lines: readonly string[]): Variables {
  const wrong = lines.findIndex((line) => !isVariable.test(line.trim()))
  if (wrong >= 0) throw new SyntaxError(`entry ${wrong + 1} is no environment variable: write NAME=VALUE`)
  return lines.map((line) => {
    const [, name = '', value = ''] = /^\s*(?:export\s+)?([^=]+)=(.*)$/s.exec(line) ?? []
    return [name, unquoted(value.trim())]
  })
}

function unquoted(value: string): string {
  return /^"(.*)"$/s.exec(value)?.[1] ?? /^'(.*)'$/s.exec(value)?.[1] ?? value.replace(/\s+#.*$/, '')
}

/** Each value of a list is split at its commas. */
function members(value: string): readonly string[] {
  return value.split(',')
}

/**
 * The containers anywhere in the specification of a manifest: of a pod, a deployment, a cron job.
 */
function containersIn(spec: unknown): readonly (readonly [string, Container])[] {
  const containers: (readonly [string, Container])[] = []
  const look = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(look)
    if (!isObject(value)) return
    if (typeof value['image'] === 'string') containers.push([String(value['name']), value])
    Object.values(value).forEach(look)
  }
  look(spec)
  return containers
}

/** `NAME: VALUE`, a list of `NAME=VALUE`, or a list of `{ name, value }`. */
export function variablesOf(variables: unknown): Variables {
  // Without a value, it is that of the environment of Compose, or in a Kubernetes Secret or
  // ConfigMap, which import cannot read.
  const known = (name: string, value: unknown) =>
    [name, value === null || value === undefined ? `\${${name}}` : String(value)] as const
  if (isObject(variables)) return Object.entries(variables).map(([name, value]) => known(name, value))
  if (!Array.isArray(variables)) return []
  return variables.map((entry: unknown) => {
    if (isObject(entry)) return known(String(entry['name']), entry['value'])
    const [, name = '', value] = /^([^=]*)(?:=(.*))?$/s.exec(String(entry)) ?? []
    return known(name, value)
  })
}

/** The words of a command, which may be one text, as a shell reads them. */
export function wordsOf(command: unknown): readonly string[] {
  if (Array.isArray(command)) return command.map((word) => String(word ?? ''))
  const words = String(command ?? '').matchAll(/(?:[^\s"']+|"(?:\\.|[^"\\])*"|'[^']*')+/g)
  return [...words].map(([word]) =>
    word.replaceAll(/"((?:\\.|[^"\\])*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ''),
  )
}
