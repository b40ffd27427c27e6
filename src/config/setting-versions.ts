import { version } from '../core/version.ts'
import type { Report } from './document/report.ts'
import type { SchemaPart } from './document/schema-part.ts'
import { visitSettings } from './document/visit-settings.ts'

/** The first version of Gatehouse. A setting without `since` in the schema exists since then. */
const firstVersion = '0.1.0'

/** For which version of Gatehouse a file is read. */
export interface ReadFor {
  /** Default: this version. */
  readonly version?: string
  /** The client is registered later, so its secret need not exist yet. */
  readonly isUnregistered?: boolean
  /**
   * The gateway does not start: credentials that systemd shows to its service only may be missing.
   */
  readonly isBeforeStart?: boolean
}

/** Whether one version is newer than another, or the same. */
function isAtLeast(one: string, other: string): boolean {
  const [a = [], b = []] = [one, other].map((text) => text.split('.').map(Number))
  const at = a.findIndex((number, index) => number !== b[index])
  return at === -1 || (a[at] ?? 0) > (b[at] ?? 0)
}

/**
 * Reads a version for which a file can be checked.
 * @throws {SyntaxError} when this version of Gatehouse does not know it
 */
export function parseKnownVersion(text: string): string {
  if (!/^\d{1,6}(?:\.\d{1,6}){2}$/.test(text)) throw new SyntaxError(`must be a version, such as ${version}`)
  if (!isAtLeast(version, text))
    throw new SyntaxError(
      `this is Gatehouse ${version}, which does not know ${text}: use gatehouse check of that version`,
    )
  if (!isAtLeast(text, firstVersion)) throw new SyntaxError(`there is no version before ${firstVersion}`)
  return text
}

/** Reports each setting that a version does not have yet: the schema says since when it exists. */
export function reportNewer(document: object, schema: SchemaPart, report: Report, readFor: string): void {
  visitSettings(document, schema, report.at(''), ({ since }, at) => {
    const isKnown = since === undefined || isAtLeast(readFor, since)
    if (!isKnown) at.errorAtKey(`needs Gatehouse ${since} or newer`, `remove it for ${readFor}`)
    return isKnown
  })
}
