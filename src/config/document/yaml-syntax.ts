import { type Document, visit, type YAMLError } from 'yaml'
import type { Place } from './diagnostics.ts'
import type { Setting } from './report.ts'
import { templateFault } from './spellings.ts'

const maxSyntaxErrors = 5

/** Errors after which the parser reads the lines below as they are meant. */
const lonelyErrors: readonly string[] = ['TAB_AS_INDENT', 'TAG_RESOLVE_FAILED', 'BAD_ALIAS', 'BAD_DQ_ESCAPE']

/**
 * Reports syntax errors: one for each line and at most `maxSyntaxErrors`, because one mistake
 * causes several errors of the parser. Most mistakes make it misread the lines below: then their
 * errors are not reported.
 * @returns whether there was an error
 */
export function reportSyntax(document: Document, placeOf: (offset: number) => Place, root: Setting): boolean {
  const lineOf = (place: Place) => root.report.sources.line(place) ?? ''
  const found = [...document.errors, ...document.warnings].map((error) => ({
    error,
    place: placeOf(isUnclosedQuote(error) ? startOfLastQuote(document, error.pos[0]) : error.pos[0]),
  }))
  // A tab in the indentation also causes errors in the lines around it.
  const hasTabs = found.some(({ error }) => error.code === 'TAB_AS_INDENT')
  const lines = new Set<number>()
  for (const { error, place } of found) {
    if (hasTabs && error.code !== 'TAB_AS_INDENT') continue
    if (lines.has(place.line) || lines.size >= maxSyntaxErrors) continue
    lines.add(place.line)
    const line = lineOf(place)
    const [before, after] = [line.slice(0, place.column - 1), line.slice(place.column - 1)]
    const isComment = [line, after].some((text) => /^\s*\/[/*]/.test(text))
    const unclosed = isComment || error.code !== 'BAD_INDENT' ? undefined : unclosedBracket(place, lineOf)
    const lineAbove = lineOf({ ...place, line: place.line - 1 })
    const explained = isComment
      ? foreignComment
      : (unclosed ??
        unquoted(line, before, after) ??
        dedented(error, lineAbove, line) ??
        explainYamlError(error, before))
    root.errorAtPlace(unclosed?.place ?? place, explained.message, explained.hint)
    if (!isComment && !lonelyErrors.includes(error.code)) break
  }
  return found.length > 0
}

/**
 * The first comment mark of other languages in a plain scalar, or `undefined`. `/*` alone is a
 * path.
 */
export function foreignCommentMark(scalar: string): string | undefined {
  return /(?:^(?=.*\s)|(?<=\s))(?:\/\/|\/\*(?=\s))|(?<=\s)\/\*(?=.*\*\/)/s.exec(scalar)?.[0]
}

interface Explained {
  readonly message: string
  readonly hint?: string
}

/** A value that needs quotes, because it begins with a bracket or contains one. */
function unquoted(line: string, before: string, after: string): Explained | undefined {
  if (line.includes('{{')) return templateFault
  // The value is not repeated, because it may be a secret.
  if (/^[\w -]+: +\{[\w.]+\}./.test(line))
    return { message: 'unexpected text', hint: "put the whole value in quotes: '…'" }
  // Within `{ }` and `[ ]`, a bracket ends a plain scalar such as `groups[0]`.
  const [begin] = /[^\s,:{}[\]"']+$/.exec(before) ?? []
  const [end] = /^(?:\[[^\]]*\]|\{[^}]*\})[^\s,:{}[\]]*/.exec(after) ?? []
  if (begin === undefined || end === undefined) return undefined
  return { message: 'unexpected text', hint: `put it in quotes: '${begin}${end}'` }
}

/** The line above a place with a bracket that is not closed; `undefined` when it is not clear. */
function unclosedBracket(end: Place, lineOf: (place: Place) => string): (Explained & { place: Place }) | undefined {
  for (let line = end.line - 1; line > 0; line -= 1) {
    const text = lineOf({ ...end, line })
    const code = text.replace(/\s#.*/, '').replaceAll(/\[[^[\]{}]*\]|\{[^[\]{}]*\}/g, (pair) => ' '.repeat(pair.length))
    if (/[\]}"']/.test(code)) return undefined
    const column = code.search(/[[{]/) + 1
    if (column === 0) continue
    const message = `the "${code.charAt(column - 1)}" here is not closed`
    const isCut = /\s#/.test(text)
    const hint = isCut ? '" #" begins a comment: put a value that contains it in quotes' : 'close it with "]" or "}"'
    return { place: { ...end, line, column }, message, hint }
  }
  return undefined
}

/** A setting in the column of the name that it belongs below. */
function dedented({ code }: YAMLError, lineAbove: string, line: string): Explained | undefined {
  const [, indent, name] = /^( *)([\w-]+): *(?:#.*)?$/.exec(lineAbove) ?? []
  const [, same, setting] = /^( *)([\w-]+):/.exec(line) ?? []
  if (code !== 'BLOCK_AS_IMPLICIT_KEY' || name === undefined || setting === undefined || indent !== same)
    return undefined
  return { message: `"${name}" has nothing below it`, hint: `indent ${setting} further` }
}

const foreignComment: Explained = { message: 'this is not a comment in YAML', hint: 'a comment begins with "#"' }

function isUnclosedQuote(error: YAMLError): boolean {
  return error.code === 'MISSING_CHAR' && error.message.includes('quote')
}

/** Where an unclosed quote begins. The parser reports it at the end of the file. */
function startOfLastQuote(document: Document, end: number): number {
  let begin = end
  visit(document, {
    Scalar(_, { type, range }) {
      if ((type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE') && range && range[0] <= end) begin = range[0]
    },
  })
  return begin
}

const quotesHint = 'put a value in quotes if it begins with [ { " \' * & ! | > % @ or `, or contains ": " or " #"'

function explainYamlError(error: YAMLError, before: string): Explained {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return { message: 'a tab cannot indent', hint: 'indent with spaces' }
    case 'MULTIPLE_DOCS':
      return { message: 'a second document begins here', hint: 'a file is one configuration: remove "---"' }
    case 'TAG_RESOLVE_FAILED':
      return {
        // The tag is not named: it may be a password that begins with "!".
        message: 'unknown tag: what begins with "!" is a tag in YAML',
        hint: 'remove it, or put a text that begins with "!" in quotes; { file: PATH } reads a secret from a file',
      }
    case 'BAD_INDENT':
      if (/Flow (map|seq)/.test(error.message))
        return { message: 'a "[" or "{" before this line is not closed', hint: 'close it with "]" or "}"' }
      return { message: 'the indentation does not fit', hint: 'settings of one map begin in the same column' }
    case 'MULTILINE_IMPLICIT_KEY':
      return { message: 'this is not "key: value"', hint: 'write a colon and a space between a key and its value' }
    case 'BLOCK_AS_IMPLICIT_KEY':
      return {
        message: 'a setting cannot begin here, after a value',
        hint: 'check the indentation of the next line; put a value that contains ": " in quotes',
      }
    case 'BAD_ALIAS':
      return {
        message: 'a value cannot begin with "*" here',
        hint: /\bpath: *$/.test(before)
          ? 'for every path, write /*'
          : 'put the value in quotes; to serve every host, leave hosts out',
      }
    case 'BAD_SCALAR_START':
      return { message: 'a value cannot begin with this character', hint: 'put the value in quotes' }
    case 'BAD_DQ_ESCAPE':
      return {
        message: 'this is not an escape sequence of double quotes',
        hint: "write the backslash twice, or use single quotes: '…'",
      }
    case 'MISSING_CHAR':
      if (isUnclosedQuote(error)) return { message: 'this quote is never closed', hint: 'close it' }
      if (error.message.startsWith('Sequence item'))
        return { message: 'an entry of a list begins with "- "', hint: 'check the indentation, or add "- "' }
      return { message: 'a character is missing before this place', hint: quotesHint }
    case 'UNEXPECTED_TOKEN':
      return { message: 'unexpected text', hint: quotesHint }
    case 'RESOURCE_EXHAUSTION':
      return { message: 'is nested too deeply' }
    default:
      return { message: `is not valid YAML: ${error.message.split('\n')[0]}` }
  }
}
