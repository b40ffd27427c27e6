import { type Document, visit, type YAMLError } from 'yaml'
import type { Place } from './diagnostics.ts'
import type { Setting } from './report.ts'

const maxSyntaxErrors = 5

/**
 * Reports syntax errors: one for each line and at most `maxSyntaxErrors`, because one mistake
 * causes several errors of the parser.
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
    if (hasTabs && error.code === 'BLOCK_AS_IMPLICIT_KEY') continue
    if (lines.has(place.line) || lines.size >= maxSyntaxErrors) continue
    lines.add(place.line)
    const line = lineOf(place)
    const [before, after] = [line.slice(0, place.column - 1), line.slice(place.column - 1)]
    const isComment = [line, after].some((text) => /^\s*\/[/*]/.test(text))
    const brackets = isComment ? undefined : unquotedBrackets(before, after)
    const { message, hint } = isComment ? foreignComment : (brackets ?? explainYamlError(error))
    root.errorAtPlace(place, message, hint)
    // The parser takes the collection to end at the bracket, so it misreads the lines below.
    if (brackets !== undefined) break
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

/** Within `{ }` and `[ ]`, a bracket ends a plain scalar such as `groups[0]`. */
function unquotedBrackets(before: string, after: string): { message: string; hint: string } | undefined {
  const [begin] = /[^\s,:{}[\]"']+$/.exec(before) ?? []
  const [end] = /^(?:\[[^\]]*\]|\{[^}]*\})[^\s,:{}[\]]*/.exec(after) ?? []
  if (begin === undefined || end === undefined) return undefined
  return { message: 'unexpected text', hint: `put it in quotes: '${begin}${end}'` }
}

const foreignComment = { message: 'this is not a comment in YAML', hint: 'a comment begins with "#"' }

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

function explainYamlError(error: YAMLError): { message: string; hint?: string } {
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
        hint: 'put the value in quotes; to serve every host, leave hosts out',
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
