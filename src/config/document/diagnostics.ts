import { type Place, placeText } from './sources.ts'

/** What is wrong, or unwise, in a configuration: where, what, and what to do about it. */
export interface Diagnostic extends Place {
  readonly severity: 'error' | 'warning'
  /**
   * The setting, as `upstreams.orders.rules[0].path`; empty when it is about the file as a whole.
   */
  readonly path: string
  readonly message: string
  readonly hint?: string
}

/**
 * `gateway.yaml:12:5  error  upstreams.orders.url: is missing`, and the hint on a line of its own.
 */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { severity, path, message, hint } = diagnostic
  const text = `${placeText(diagnostic)}  ${severity}  ${path === '' ? '' : `${path}: `}${message}`
  return hint === undefined ? text : `${text}\n    ${hint}`
}

export function formatDiagnostics(diagnostics: readonly Diagnostic[]): string {
  return diagnostics.map(formatDiagnostic).join('\n')
}
