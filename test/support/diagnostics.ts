import { type Diagnostic, formatDiagnostic } from '../../src/config/document/diagnostics.ts'

/** Diagnostics as text, each on its lines. */
export function formatDiagnostics(diagnostics: readonly Diagnostic[]): string {
  return diagnostics.map(formatDiagnostic).join('\n')
}
