import type { Diagnostic } from '../config/document/diagnostics.ts'
import { placeText, type Sources } from '../config/document/sources.ts'
import { type Paint, plainly } from './paint.ts'

/**
 * Diagnostics for a person: where and what, the line with a caret below the place that is meant,
 * and what to do.
 */
export function shownDiagnostics(diagnostics: readonly Diagnostic[], sources: Sources, paint: Paint = plainly): string {
  return diagnostics.map((diagnostic) => shown(diagnostic, sources, paint)).join('')
}

function shown(diagnostic: Diagnostic, sources: Sources, paint: Paint): string {
  const { severity, line, path, message, hint } = diagnostic
  const colour = severity === 'error' ? 'red' : 'yellow'
  const what = `${paint('bold', path === '' ? '' : `${path}: `)}${message}`
  const lines = [`${paint('cyan', placeText(diagnostic))}  ${paint(colour, severity)}  ${what}`]
  const quote = sources.quote(diagnostic, `${path} ${hint ?? ''}`)
  if (quote !== undefined) {
    const number = String(line).padStart(6)
    lines.push(`${paint('grey', `${number} |`)} ${quote.text}`)
    lines.push(`${paint('grey', `${' '.repeat(number.length)} |`)} ${' '.repeat(quote.before)}${paint(colour, '^')}`)
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

/** As the runner reads it back. */
function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

/** `2 errors, 1 warning`; empty when there is neither. */
export function countOf(diagnostics: readonly Diagnostic[]): string {
  const count = (severity: Diagnostic['severity']) => {
    const many = diagnostics.filter((diagnostic) => diagnostic.severity === severity).length
    return many === 0 ? [] : [`${many} ${severity}${many === 1 ? '' : 's'}`]
  }
  return [...count('error'), ...count('warning')].join(', ')
}
