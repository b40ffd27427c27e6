import { fieldLine } from './fields.ts'

/** Where the fields of a message are collected. */
export interface FieldCollector {
  add(name: string, value: string): void
  /** Adds fields before all others: names and values in turn. */
  addFirst(fields: readonly string[]): void
  /**
   * Adds a field that was received, as it is.
   * @param at where its line begins in the text of all received fields
   */
  keep(name: string, value: string, at: number): void
}

/**
 * The length of a line that {@link fieldLine} writes: CRLF, the name, a colon, a space, the value.
 */
export function lineLength(name: string, value: string): number {
  return name.length + value.length + 4
}

/** Collects names and values in turn. */
export class FieldPairs implements FieldCollector {
  readonly pairs: string[] = []

  add(name: string, value: string): void {
    this.pairs.push(name, value)
  }

  addFirst(fields: readonly string[]): void {
    this.pairs.unshift(...fields)
  }

  keep(name: string, value: string): void {
    this.pairs.push(name, value)
  }
}

/**
 * Collects the lines of a head. Lines that are kept are copied from the received text, and lines
 * that follow each other are copied together. Taking each apart and joining it again would cost
 * more than all else that a field needs.
 */
export class FieldLines implements FieldCollector {
  readonly #received: string | undefined
  #text = ''
  /** The part of the received text that was kept and is not in `#text` yet. */
  #from = 0
  #to = 0
  /** The name of an invalid field, which was left out. */
  invalid: string | undefined
  hasContentLength = false
  hasDate = false
  hasConnection = false
  /** A `Connection` field has the option `close`. */
  closes = false

  /**
   * @param received all received fields, each as {@link fieldLine} writes it. Absent: they may have
   * been written in another way, so each line is written anew.
   */
  constructor(received?: string) {
    this.#received = received
  }

  /** The lines of names and values in turn. */
  static of(fields: readonly string[]): FieldLines {
    const lines = new FieldLines()
    lines.addFirst(fields)
    return lines
  }

  /** Each begins with the CRLF of the line before. */
  get text(): string {
    this.#copy()
    return this.#text
  }

  add(name: string, value: string): void {
    this.#copy()
    this.#text += this.#line(name, value)
  }

  addFirst(fields: readonly string[]): void {
    const others = this.text
    this.#text = ''
    for (let at = 0; at + 1 < fields.length; at += 2) this.add(fields[at] as string, fields[at + 1] as string)
    this.#text += others
  }

  keep(name: string, value: string, at: number): void {
    if (this.#received === undefined) return this.add(name, value)
    if (at !== this.#to) {
      this.#copy()
      this.#from = at
    }
    this.#to = at + lineLength(name, value)
    this.#note(name, value)
  }

  #line(name: string, value: string): string {
    this.#note(name, value)
    const line = fieldLine(name, value)
    if (line === undefined) this.invalid ??= name
    return line ?? ''
  }

  #copy(): void {
    if (this.#from === this.#to) return
    this.#text += (this.#received as string).slice(this.#from, this.#to)
    this.#from = this.#to
  }

  #note(name: string, value: string): void {
    switch (name.length) {
      case 4:
        this.hasDate ||= name.toLowerCase() === 'date'
        break
      case 10:
        if (name.toLowerCase() !== 'connection') break
        this.hasConnection = true
        this.closes ||= /\bclose\b/i.test(value)
        break
      case 14:
        this.hasContentLength ||= name.toLowerCase() === 'content-length'
    }
  }
}
