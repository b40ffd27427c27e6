import { type Diagnostic, limitDiagnostics, placeText, type Sources } from '../config/document/diagnostics.ts'
import { type Paint, withoutColors } from './paint.ts'

/**
 * Formats diagnostics for a terminal: place and message, the line with a caret below the column,
 * and the hint.
 */
export function formatDiagnostics(
  diagnostics: readonly Diagnostic[],
  sources: Sources,
  paint: Paint = withoutColors,
): string {
  const { shown, more } = limitDiagnostics(diagnostics)
  const texts = shown.map((diagnostic) => formatOne(diagnostic, sources, paint))
  return `${texts.join('')}${more === undefined ? '' : `${more}\n`}`
}

function formatOne(diagnostic: Diagnostic, sources: Sources, paint: Paint): string {
  const { severity, line, path, message, hint } = diagnostic
  const color = severity === 'error' ? 'red' : 'yellow'
  const what = `${paint('bold', path === '' ? '' : `${path}: `)}${message}`
  const lines = [`${paint('cyan', placeText(diagnostic))}  ${paint(color, severity)}  ${what}`]
  const quote = sources.quote(diagnostic, `${path} ${hint ?? ''}`)
  if (quote !== undefined) {
    const number = String(line).padStart(6)
    lines.push(`${paint('grey', `${number} |`)} ${quote.text}`)
    lines.push(`${paint('grey', `${' '.repeat(number.length)} |`)} ${' '.repeat(quote.before)}${paint(color, '^')}`)
  }
  if (hint !== undefined) lines.push(`    ${hint}`)
  return `${lines.join('\n')}\n`
}

/**
 * A workflow command of GitHub Actions, which shows the diagnostic beside the line in a pull
 * request: `::error file=gateway.yaml,line=9,col=5,title=…::…`
 */
export function gitHubCommand({ severity, file, line, column, path, message, hint }: Diagnostic): string {
  const place = line === 0 ? { file } : { file, line, col: column }
  const properties = Object.entries({ ...place, title: path === '' ? 'gatehouse' : path })
    .map(([name, value]) => `${name}=${escaped(String(value)).replaceAll(':', '%3A').replaceAll(',', '%2C')}`)
    .join(',')
  return `::${severity} ${properties}::${escaped(hint === undefined ? message : `${message}\n${hint}`)}`
}

/** Escapes a text as the runner of GitHub Actions expects it. */
function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

/** `2 errors, 1 warning`; empty without diagnostics. */
export function countOf(diagnostics: readonly Diagnostic[]): string {
  const count = (severity: Diagnostic['severity']) => {
    const number = diagnostics.filter((diagnostic) => diagnostic.severity === severity).length
    return number === 0 ? [] : [`${number} ${severity}${number === 1 ? '' : 's'}`]
  }
  return [...count('error'), ...count('warning')].join(', ')
}
