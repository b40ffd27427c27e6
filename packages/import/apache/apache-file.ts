import type { Notes } from '../common/notes.ts'
import type { GivenText } from '../common/written-config.ts'
import { restrictsNothing } from './apache-directives.ts'

/** A directive of Apache, or a section with the directives in it. */
export interface Directive {
  /** In lower case. */
  readonly name: string
  /** As it is written in the file, for notes. */
  readonly written: string
  readonly args: readonly string[]
  /** The directives of a section. */
  readonly children?: readonly Directive[]
}

/**
 * Reads configuration files of Apache. Conditions and included files are resolved where they can be
 * known. Where they cannot, and could decide who has access, the file denies all people.
 * @param definitions the names of `-D`
 * @throws {SyntaxError} names the file and the line; the message quotes no argument
 */
export function readApache(texts: readonly GivenText[], definitions: readonly string[], from: Notes): Directive[] {
  const reader = new ApacheReader(texts, definitions, from)
  return reader.read()
}

/** A section in a note: `<Location /admin>`. */
export function shownSection({ written, args }: Directive): string {
  return `<${[written, ...args].join(' ')}>`
}

/** The modules that a site with mod_auth_openidc and ProxyPass has. */
const loaded =
  /^(?:mod_)?(?:auth_openidc|auth[nz]_core|authz_host|authz_user|core|headers|proxy|proxy_http|so|ssl)(?:\.c|_module)?$/

interface Line {
  readonly text: string
  readonly place: string
}

class ApacheReader {
  readonly #texts: readonly GivenText[]
  readonly #defined: Map<string, string>
  readonly #from: Notes
  readonly #included = new Set<GivenText>()

  constructor(texts: readonly GivenText[], definitions: readonly string[], from: Notes) {
    this.#texts = texts
    this.#defined = new Map(definitions.map((name) => [name, '']))
    this.#from = from
  }

  read(): Directive[] {
    const names = this.#texts.flatMap(({ text }) =>
      linesOf(text, '').flatMap((line) => includedPattern(line.text) ?? []),
    )
    // A file that another one includes is read there.
    const isIncluded = ({ name }: GivenText) => names.some((pattern) => matchesFile(pattern, name))
    return this.#texts.filter((text) => !isIncluded(text)).flatMap((text) => this.#readText(text))
  }

  #readText(given: GivenText): Directive[] {
    if (this.#included.has(given)) throw new SyntaxError(`${given.name}: the file includes itself`)
    this.#included.add(given)
    const lines = linesOf(given.text, given.name)
    const directives = this.#readSection(lines, undefined)
    this.#included.delete(given)
    return directives
  }

  /** Takes the lines of a section, and its end. */
  #readSection(lines: Line[], section: string | undefined): Directive[] {
    const found: Directive[] = []
    for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
      const text = line.text.replaceAll(/\$\{([^{}]+)\}/g, (whole, name: string) => this.#defined.get(name) ?? whole)
      const [, end] = /^<\/(\S+?)>$/.exec(text) ?? []
      if (end !== undefined) {
        if (end.toLowerCase() === section?.toLowerCase()) return found
        throw new SyntaxError(`${line.place}: </${end}> ends no section that is open`)
      }
      const [, opened, rest = ''] = /^<([A-Za-z]+)\s*(.*)>$/s.exec(text) ?? []
      if (opened === undefined && text.startsWith('<')) throw new SyntaxError(`${line.place}: the section has no ">"`)
      const [name = '', ...args] = opened === undefined ? wordsOf(text) : [opened, ...wordsOf(rest)]
      const directive = { name: name.toLowerCase(), written: name, args }
      if (opened === undefined) found.push(...this.#resolved(directive))
      else found.push(...this.#resolved({ ...directive, children: this.#readSection(lines, name) }))
    }
    if (section !== undefined) throw new SyntaxError(`the section <${section}> has no end`)
    return found
  }

  /** What takes the place of a directive: its content, if it is a condition that holds. */
  #resolved(directive: Directive): readonly Directive[] {
    const { name, args, children } = directive
    const [first = ''] = args
    if (name === 'define') this.#defined.set(first, args[1] ?? '')
    if (name === 'define') return []
    if (name === 'include' || name === 'includeoptional') return this.#include(first, name === 'includeoptional')
    if (name === 'use')
      this.#from.deny(
        'Use',
        `the macro ${first} is not expanded, and may restrict access; write its content in place of Use`,
      )
    if (name === 'use' || name === 'macro') return []
    if (children !== undefined && /^if(?:define|module|version|file|directive|section)$/.test(name))
      return this.#condition(directive, first, children)
    const unknown = [name, ...args].some((word) => word.includes('${'))
    if (unknown && !restrictsNothing(directive))
      this.#from.deny(
        directive.written,
        'its value has a variable such as ${NAME}, which is unknown here; add a line Define NAME VALUE',
      )
    return [directive]
  }

  #include(pattern: string, isOptional: boolean): readonly Directive[] {
    const files = this.#texts.filter(({ name }) => matchesFile(pattern, name))
    if (files.length === 0 && !isOptional)
      this.#from.deny('Include', `${pattern} is not among the files, and may restrict access; give it to import too`)
    else if (files.length === 0)
      this.#from.deny(
        'IncludeOptional',
        `${pattern} is not among the files, and may restrict access; give it to import too, or remove this line from a copy if it does not exist`,
      )
    return files.flatMap((file) => this.#readText(file))
  }

  #condition({ name, written }: Directive, text: string, children: readonly Directive[]): readonly Directive[] {
    const [isNegated, subject] = [text.startsWith('!'), text.replace(/^!/, '')]
    const isKnown = name === 'ifmodule' ? loaded.test(subject) : name === 'ifdefine' && this.#defined.has(subject)
    if (isKnown) return isNegated ? [] : children
    // Without -D, a name is not defined. An operator may have it elsewhere.
    if (children.some(decides))
      this.#from.deny(
        `<${written} ${text}>`,
        `whether this applies is unknown here, and it has directives about access; remove the condition, or what does not apply${name === 'ifdefine' ? `, or give import -- -D ${subject}` : ''}`,
      )
    return name === 'ifmodule' && !isNegated ? children : []
  }
}

function decides(directive: Directive): boolean {
  return directive.children?.some(decides) ?? !restrictsNothing(directive)
}

/** Lines without comments and empty ones; a `\` at the end of a line continues it. */
function linesOf(text: string, name: string): Line[] {
  const joined = text.replaceAll(/\\\r?\n[ \t]*/g, '\u0000')
  let number = 0
  return joined.split(/\r?\n/).flatMap((line) => {
    number += 1
    const place = `${name}, line ${number}`
    number += line.split('\u0000').length - 1
    const whole = line.replaceAll('\u0000', ' ').trim()
    return whole === '' || whole.startsWith('#') ? [] : [{ text: whole, place }]
  })
}

/** Words, which may be in quotes. In a quoted word, a backslash precedes a quote. */
function wordsOf(text: string): string[] {
  const words = text.matchAll(/"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|(\S+)/g)
  return [...words].map(([, double, single, bare]) => bare ?? (double ?? single ?? '').replaceAll(/\\(["'\\])/g, '$1'))
}

function includedPattern(line: string): string | undefined {
  const [name, pattern] = wordsOf(line)
  return /^include(?:optional)?$/i.test(name ?? '') ? pattern : undefined
}

/** Whether a given file may be the one that a path or a pattern of `Include` names. */
function matchesFile(pattern: string, name: string): boolean {
  const [wanted, given] = [pattern, name].map((path) =>
    path
      .split('/')
      .filter((part) => !/^\.?$/.test(part))
      .reverse(),
  )
  if (wanted === undefined || given === undefined || wanted.length === 0) return false
  // A pattern such as conf.d/*.conf matches only files whose folder is known.
  const count = pattern.includes('*') ? Math.min(wanted.length, 2) : 1
  return (
    given.length >= count &&
    wanted.slice(0, given.length).every((part, index) => expressionOf(part).test(given[index] ?? ''))
  )
}

function expressionOf(part: string): RegExp {
  const escaped = part.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`)
}
