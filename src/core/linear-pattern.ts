import { ownMember } from './json.ts'
/** What one character of a text must be. Takes a code point. */
type CharacterTest = (character: number) => boolean

/** A step of a compiled pattern. */
type Step =
  | { readonly kind: 'character'; readonly test: CharacterTest }
  /** Continues at each of the steps with these indexes, without reading a character. */
  | { readonly kind: 'fork'; to: readonly number[] }
  | { readonly kind: 'end' }

/** The most characters of a pattern. */
const maxLength = 256
const maxSteps = 1000
/** The largest number in `{2,5}`. */
const maxRepeats = 100
/** The longest text that can match, in UTF-16 code units. Longer texts take longer to match. */
const maxTextLength = 1024

/**
 * A regular expression that matches in a time proportional to the length of the text, whatever the
 * text is. It has characters, `.`, `[a-z]`, `\d`, `\w`, `\s`, groups, `|`, `?`, `*`, `+` and
 * `{2,5}`, with the meaning of ECMAScript. It always matches the whole text, so `^` at its
 * beginning and `$` at its end change nothing. It has neither back-references nor look-around,
 * which need more time.
 */
export class LinearPattern {
  readonly text: string
  readonly #steps: readonly Step[]

  /** @throws {SyntaxError} names what is wrong */
  constructor(text: string) {
    this.text = text
    const [, slashed, inline] = /^\/\^(.*)\/[a-z]*$|^\(\?[a-z]+\)(.*)$/.exec(text) ?? []
    const delimited = slashed ?? inline
    if (delimited !== undefined) throw new SyntaxError(`has delimiters or flags; ${withoutDelimiters(delimited)}`)
    const steps: Step[] = []
    append(new Parser(text).parse(), steps)
    add({ kind: 'end' }, steps)
    this.#steps = steps
  }

  /** Whether the whole text matches. */
  matches(text: string): boolean {
    if (text.length > maxTextLength) return false
    let current = this.#reached([0])
    for (const character of text) {
      const code = character.codePointAt(0) ?? 0
      const next: number[] = []
      for (const at of current) {
        const step = this.#steps[at]
        if (step?.kind === 'character' && step.test(code)) next.push(at + 1)
      }
      if (next.length === 0) return false
      current = this.#reached(next)
    }
    return [...current].some((at) => this.#steps[at]?.kind === 'end')
  }

  /** The steps that can be reached from these without reading a character. */
  #reached(from: readonly number[]): ReadonlySet<number> {
    const reached = new Set<number>()
    const waiting = [...from]
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      if (reached.has(at)) continue
      reached.add(at)
      const step = this.#steps[at]
      if (step?.kind === 'fork') waiting.push(...step.to)
    }
    return reached
  }
}

/** What to write in place of `/^pattern$/i` and `(?i)pattern`. */
export function withoutDelimiters(pattern: string): string {
  return `write ${pattern.replaceAll(/^\^|\$$/g, '')}, without slashes and flags around it: upper and lower case always differ`
}

/** A part of a pattern. */
type Part =
  | { readonly kind: 'character'; readonly test: CharacterTest }
  | { readonly kind: 'group'; readonly alternatives: readonly (readonly Part[])[] }
  | { readonly kind: 'repeat'; readonly part: Part; readonly least: number; readonly most: number }

/** Appends the steps of a part. The pattern continues with the step that is appended next. */
function append(part: Part, steps: Step[]): void {
  switch (part.kind) {
    case 'character':
      return void add(part, steps)
    case 'group': {
      const begin = addFork(steps)
      const begins: number[] = []
      const ends = part.alternatives.map((parts) => {
        begins.push(steps.length)
        for (const each of parts) append(each, steps)
        return addFork(steps)
      })
      begin.to = begins
      for (const end of ends) end.to = [steps.length]
      return
    }
    case 'repeat': {
      for (let n = 0; n < part.least; n += 1) append(part.part, steps)
      if (part.most === Infinity) return appendLoop(part.part, steps)
      const skips: (() => void)[] = []
      for (let n = part.least; n < part.most; n += 1) {
        const fork = addFork(steps)
        const next = steps.length
        skips.push(() => (fork.to = [next, steps.length]))
        append(part.part, steps)
      }
      for (const skip of skips) skip()
    }
  }
}

function appendLoop(part: Part, steps: Step[]): void {
  const begin = steps.length
  const fork = addFork(steps)
  append(part, steps)
  addFork(steps).to = [begin]
  fork.to = [begin + 1, steps.length]
}

function addFork(steps: Step[]): { to: readonly number[] } {
  const fork = { kind: 'fork' as const, to: [] as readonly number[] }
  add(fork, steps)
  return fork
}

function add(step: Step, steps: Step[]): void {
  if (steps.length >= maxSteps) throw new SyntaxError('the pattern is too large: it repeats too much')
  steps.push(step)
}

class Parser {
  readonly #characters: readonly string[]
  #at = 0

  constructor(text: string) {
    if (text.length > maxLength) throw new SyntaxError(`a pattern has at most ${maxLength} characters`)
    this.#characters = [...text.replace(/(?<!\\)((?:\\\\)*)\$$/, '$1')]
    // Skipped and not removed, because messages count characters of the text.
    this.#take('^')
  }

  parse(): Part {
    const pattern = this.#group()
    if (this.#here !== undefined) throw new SyntaxError(`")" without "(" at character ${this.#at + 1}`)
    return pattern
  }

  get #here(): string | undefined {
    return this.#characters[this.#at]
  }

  /** `a|b` */
  #group(): Part {
    const alternatives: Part[][] = []
    do {
      const parts: Part[] = []
      while (this.#here !== undefined && this.#here !== '|' && this.#here !== ')') parts.push(this.#repeated())
      alternatives.push(parts)
    } while (this.#take('|'))
    return { kind: 'group', alternatives }
  }

  /** A part, and how often it is repeated. */
  #repeated(): Part {
    const part = this.#part()
    const [least, most] = this.#count()
    if (/[*+?]/.test(this.#here ?? ''))
      throw new SyntaxError(`"${this.#here}" repeats nothing at character ${this.#at + 1}`)
    return least === 1 && most === 1 ? part : { kind: 'repeat', part, least, most }
  }

  #count(): readonly [least: number, most: number] {
    if (this.#take('*')) return [0, Infinity]
    if (this.#take('+')) return [1, Infinity]
    if (this.#take('?')) return [0, 1]
    const rest = this.#characters.slice(this.#at, this.#at + 12).join('')
    const [all, least, comma, most] = /^\{(\d+)(,)?(\d*)\}/.exec(rest) ?? []
    if (all === undefined) {
      if (this.#here === '{') throw new SyntaxError(`write "\\{" for a brace at character ${this.#at + 1}`)
      return [1, 1]
    }
    this.#at += all.length
    const to = comma === undefined ? Number(least) : most === '' ? Infinity : Number(most)
    if (Number(least) > maxRepeats || (to !== Infinity && to > maxRepeats) || to < Number(least))
      throw new SyntaxError(`"${all}" must repeat from 0 to ${maxRepeats} times`)
    return [Number(least), to]
  }

  /** A group, a class, or a character. */
  #part(): Part {
    if (!this.#take('(')) return { kind: 'character', test: this.#take('[') ? this.#class() : this.#character() }
    if (this.#take('?') && !this.#take(':'))
      throw new SyntaxError(`"(?" is supported as "(?:" only, at character ${this.#at}`)
    const group = this.#group()
    if (!this.#take(')')) throw new SyntaxError('a "(" has no ")"')
    return group
  }

  #character(): CharacterTest {
    const character = this.#next()
    if (character === '.') return isNoLineBreak
    if (character === '\\') return this.#escaped()
    if (/[*+?{}\]^$]/.test(character))
      throw new SyntaxError(`write "\\${character}" for "${character}" itself, at character ${this.#at}`)
    return is(character)
  }

  #escaped(): CharacterTest {
    const character = this.#next()
    const known = ownMember(classes, character)
    if (known !== undefined) return known
    if (/[\p{L}\p{N}]/u.test(character)) throw new SyntaxError(`"\\${character}" is not supported`)
    return is(character)
  }

  /** What stands between `[` and `]`. */
  #class(): CharacterTest {
    const isNegated = this.#take('^')
    const tests: CharacterTest[] = []
    while (!this.#take(']')) {
      const first = this.#next('a "[" has no "]"')
      if (first === '\\' && /[dDwWsS]/.test(this.#here ?? '')) {
        tests.push(this.#escaped())
        continue
      }
      const from = this.#member(first)
      if (this.#here !== '-' || this.#characters[this.#at + 1] === ']') {
        tests.push((character) => character === from)
        continue
      }
      this.#at += 1
      const to = this.#member(this.#next('a "[" has no "]"'))
      if (to < from) throw new SyntaxError('a range such as [a-z] goes from a lower character to a higher one')
      tests.push((character) => character >= from && character <= to)
    }
    return (character) => tests.some((test) => test(character)) !== isNegated
  }

  #member(character: string): number {
    if (character !== '\\') return character.codePointAt(0) ?? 0
    const escaped = this.#next('a "[" has no "]"')
    if (/[\p{L}\p{N}]/u.test(escaped)) throw new SyntaxError(`"\\${escaped}" is not supported here`)
    return escaped.codePointAt(0) ?? 0
  }

  #next(otherwise = 'the pattern ends too early'): string {
    const character = this.#here
    if (character === undefined) throw new SyntaxError(otherwise)
    this.#at += 1
    return character
  }

  #take(character: string): boolean {
    const isThere = this.#here === character
    if (isThere) this.#at += 1
    return isThere
  }
}

function is(character: string): CharacterTest {
  const wanted = character.codePointAt(0)
  return (code) => code === wanted
}

function byExpression(expression: RegExp): CharacterTest {
  return (code) => expression.test(String.fromCodePoint(code))
}

const isNoLineBreak = byExpression(/./u)
const classes: Readonly<Record<string, CharacterTest>> = {
  d: byExpression(/\d/),
  D: byExpression(/\D/),
  w: byExpression(/\w/),
  W: byExpression(/\W/),
  s: byExpression(/\s/),
  S: byExpression(/\S/),
}
