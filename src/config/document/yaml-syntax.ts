import { type Document, visit, type YAMLError } from 'yaml'
import type { Report } from './report.ts'
import type { Place } from './sources.ts'

const maxSyntaxErrors = 5

/**
 * Reports what is wrong with a text as YAML. One slip makes the parser stumble several times: it is
 * told once for a line, and not without end.
 * @returns whether there was anything
 */
export function reportSyntax(
  document: Document,
  placeOf: (offset: number) => Place,
  root: string,
  report: Report,
): boolean {
  const lineOf = (place: Place) => report.sources.line(place) ?? ''
  const found = [...document.errors, ...document.warnings].map((error) => ({
    error,
    place: placeOf(isUnclosedQuote(error) ? lastQuoteBegins(document, error.pos[0]) : error.pos[0]),
  }))
  // A line that a tab indents belongs nowhere, so the parser stumbles over its neighbours, too.
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
    const { message, hint } = isComment ? foreignComment : (brackets ?? inPlainWords(error))
    report.errorAtPlace(place, root, message, hint)
    // The parser takes the collection to end at the bracket, so it misreads the lines below.
    if (brackets !== undefined) break
  }
  return found.length > 0
}

/**
 * The first mark of a comment of other languages in a plain scalar; undefined: there is none. `/*`
 * alone is a path.
 */
export function foreignCommentMark(scalar: string): string | undefined {
  return /(?:^|(?<=\s))(?:\/\/|\/\*(?=\s))|(?<=\s)\/\*(?=.*\*\/)/s.exec(scalar)?.[0]
}

/** Within `{ }` and `[ ]`, a bracket ends a plain scalar such as `groups[0]`. */
function unquotedBrackets(before: string, after: string): { message: string; hint: string } | undefined {
  const [begin] = /[^\s,:{}[\]"']+$/.exec(before) ?? []
  const [end] = /^(?:\[[^\]]*\]|\{[^}]*\})[^\s,:{}[\]]*/.exec(after) ?? []
  if (begin === undefined || end === undefined) return undefined
  return { message: 'this cannot stand here', hint: `put it in quotes: '${begin}${end}'` }
}

const foreignComment = { message: 'this is no comment in YAML', hint: 'a comment begins with "#"' }

function isUnclosedQuote(error: YAMLError): boolean {
  return error.code === 'MISSING_CHAR' && error.message.includes('quote')
}

/**
 * The parser reports a quote that is never closed at the end of the file; people look for where it
 * begins.
 */
function lastQuoteBegins(document: Document, end: number): number {
  let begin = end
  visit(document, {
    Scalar(_, { type, range }) {
      if ((type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE') && range && range[0] <= end) begin = range[0]
    },
  })
  return begin
}

const quotesHint =
  'a value that begins with [ { " \' * & ! | > % @ or `, or that has ": " or " #" in it, is put in quotes as a whole'

function inPlainWords(error: YAMLError): { message: string; hint?: string } {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return { message: 'a tab cannot indent', hint: 'indent with spaces' }
    case 'MULTIPLE_DOCS':
      return { message: 'a second document begins here', hint: 'one file is one configuration: remove "---"' }
    case 'TAG_RESOLVE_FAILED':
      return {
        message: `the tag ${error.message.replace('Unresolved tag: ', '').replace('tag:yaml.org,2002:', '!!')} is not known here`,
        hint: 'remove it: values are text, numbers, true and false, lists and maps',
      }
    case 'BAD_INDENT':
      if (/Flow (map|seq)/.test(error.message))
        return { message: 'a "[" or "{" before this line is not closed', hint: 'close it with "]" or "}"' }
      return { message: 'the indentation does not fit', hint: 'what belongs together begins in the same column' }
    case 'MULTILINE_IMPLICIT_KEY':
      return { message: 'this is not "key: value"', hint: 'a colon and a space stand between a key and its value' }
    case 'BLOCK_AS_IMPLICIT_KEY':
      return {
        message: 'settings cannot begin here, behind a value',
        hint: 'check the indentation of the next line; put a value that has ": " in it in quotes',
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
      return { message: 'this cannot stand here', hint: quotesHint }
    case 'RESOURCE_EXHAUSTION':
      return { message: 'is nested too deeply' }
    default:
      return { message: `is not valid YAML: ${error.message.split('\n')[0]}` }
  }
}
