import { Document, isMap, isScalar } from 'yaml'
import { printable } from '../../../src/entries/import.ts'
import type { Note, Notes } from './notes.ts'
import { type Outcome, withTests } from './outcomes.ts'
import type { WrittenConfig, WrittenUpstream } from './written-config.ts'

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
  const tested = withTests({ ...config, upstreams: withoutDefaultRules(config) }, outcomes, program, from)
  const { notes } = from
  const open = notes.filter(({ level }) => level === 'decide')
  const comments = [
    ' yaml-language-server: $schema=gateway.schema.json',
    ...(open.length === 0 ? [] : [' ', ' Decide before use:']),
    ...open.map(({ option, text }) => printable(` - ${option}: ${text}`)),
  ]
  const document = new Document(tested, { aliasDuplicateObjects: false })
  document.commentBefore = comments.join('\n')
  const [, ...rest] = isMap(document.contents) ? document.contents.items : []
  for (const { key } of rest) if (isScalar(key)) key.spaceBefore = true
  return { yaml: document.toString({ lineWidth: 0 }), notes }
}

/** Without rules, all paths require a sign-in. So rules that say no more are left out. */
function withoutDefaultRules({ upstreams }: WrittenConfig): WrittenConfig['upstreams'] {
  const isDefault = (rule: object) =>
    Object.entries(rule).every(([name, value]) => name === 'path' || value === undefined)
  return Object.fromEntries(
    Object.entries(upstreams).map(([name, upstream]): [string, WrittenUpstream] => [
      name,
      upstream.rules?.every(isDefault) === true ? { ...upstream, rules: undefined } : upstream,
    ]),
  )
}
