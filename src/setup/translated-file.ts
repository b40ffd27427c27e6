import { stringify } from 'yaml'
import { printable } from '../core/errors.ts'
import type { Note, Notes } from './notes.ts'
import { type Outcome, withTests } from './outcomes.ts'
import type { WrittenConfig } from './written-config.ts'

/** A configuration in YAML, and notes about it, open decisions first. Neither contains a secret. */
export interface Translated {
  readonly yaml: string
  readonly notes: readonly Note[]
}

/**
 * The file, with tests for what the other program decides.
 * @param program the name of the other program
 */
export function translatedFile(
  config: WrittenConfig,
  outcomes: readonly Outcome[],
  program: string,
  from: Notes,
): Translated {
  const tested = withTests(config, outcomes, program, from)
  const { notes } = from
  const open = notes.filter(({ level }) => level === 'decide')
  const comments = [
    ' yaml-language-server: $schema=gateway.schema.json',
    ...(open.length === 0 ? [] : ['', ' Decide before use:']),
    ...open.map(({ option, text }) => printable(` - ${option}: ${text}`)),
  ]
  const parts = stringify(tested, { lineWidth: 0, aliasDuplicateObjects: false }).replaceAll(/^(?=[a-z])/gm, '\n')
  return { yaml: `${comments.map((text) => `#${text}\n`).join('')}${parts}`, notes }
}
