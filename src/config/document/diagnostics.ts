import { type Place, placeText } from './sources.ts'

/** An error or a warning about a configuration: the place, what is wrong, and what to do. */
export interface Diagnostic extends Place {
  readonly severity: 'error' | 'warning'
  /**
   * The setting, as `upstreams.orders.rules[0].path`; empty for the whole file.
   */
  readonly path: string
  readonly message: string
  readonly hint?: string
}

/**
 * `gateway.yaml:12:5  error  upstreams.orders.url: is missing`. The hint follows on its own line.
 */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { severity, path, message, hint } = diagnostic
  const text = `${placeText(diagnostic)}  ${severity}  ${path === '' ? '' : `${path}: `}${message}`
  return hint === undefined ? text : `${text}\n    ${hint}`
}

/** A person who reads more diagnostics than this does not see the first ones. */
const maxShown = 100

/** The diagnostics to show, errors before warnings, and a text that counts the others. */
export function limitDiagnostics(all: readonly Diagnostic[]): { shown: readonly Diagnostic[]; more?: string } {
  if (all.length <= maxShown) return { shown: all }
  const rank = ({ severity }: Diagnostic) => (severity === 'error' ? 0 : 1)
  const shown = all.toSorted((a, b) => rank(a) - rank(b)).slice(0, maxShown)
  return { shown, more: `and ${all.length - maxShown} more` }
}

/** The diagnostics as a list for the log. */
export function listDiagnostics(diagnostics: readonly Diagnostic[]): string[] {
  const { shown, more } = limitDiagnostics(diagnostics)
  return [...shown.map(formatDiagnostic), ...(more === undefined ? [] : [more])]
}
