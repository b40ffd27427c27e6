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

export function formatDiagnostics(diagnostics: readonly Diagnostic[]): string {
  return diagnostics.map(formatDiagnostic).join('\n')
}
