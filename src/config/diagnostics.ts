/** What is wrong, or unwise, in a configuration: where, what, and what to do about it. */
export interface Diagnostic {
  readonly severity: 'error' | 'warning'
  readonly file: string
  /** From 1; 0 when it is about the file as a whole. */
  readonly line: number
  readonly column: number
  /** The setting, as `upstreams.orders.rules[0].path`; empty when it is about the file as a whole. */
  readonly path: string
  readonly message: string
  readonly hint?: string
}

/** `gateway.yaml:12:5  error  upstreams.orders.url: is missing`, and the hint on a line of its own. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { severity, file, line, column, path, message, hint } = diagnostic
  const place = line === 0 ? file : `${file}:${line}:${column}`
  const text = `${place}  ${severity}  ${path === '' ? '' : `${path}: `}${message}`
  return hint === undefined ? text : `${text}\n    ${hint}`
}

export function formatDiagnostics(diagnostics: readonly Diagnostic[]): string {
  return diagnostics.map(formatDiagnostic).join('\n')
}
