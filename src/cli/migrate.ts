import type { FoundRename } from '../config/document/report.ts'
import { loadConfig } from '../config/load.ts'
import { migratedText } from '../config/migrated-text.ts'
import type { ReadFor } from '../config/setting-versions.ts'
import { type CommandInput, reader, readOptions, takeNone } from './command.ts'
import { readText, replaceText } from './given-file.ts'
import { lineDiff } from './line-diff.ts'
import { countOf, formatDiagnostics } from './show-diagnostics.ts'

/** Reads the arguments of `gatehouse migrate`. */
export const readMigrateCall = reader((argv) => {
  const { values, positionals } = readOptions(argv, { write: { type: 'boolean', default: false } })
  const [file = 'gateway.yaml', ...more] = positionals
  takeNone(more)
  return (terminal) => migrate({ ...terminal, file }, values.write)
})

/**
 * `gatehouse migrate`: prints how to rewrite a file whose settings have former names, or rewrites
 * it, with the files that it includes.
 * @throws {OperatorError} when a file cannot be read or written
 */
export async function migrate(
  { file, env, out, err, paintErr }: CommandInput,
  write: boolean,
  readFor: ReadFor = {},
): Promise<number> {
  const loaded = loadConfig(file, env, readFor)
  const migrated = migrations(loaded.renames)
  if (migrated.length === 0) {
    if (loaded.ok) out(`${file} has no setting with a former name.\n`)
    else
      err(
        `${formatDiagnostics(loaded.diagnostics, loaded.sources, paintErr)}\n${file}: ${countOf(loaded.diagnostics)}\n`,
      )
    return loaded.ok ? 0 : 1
  }
  for (const { name, before, after } of migrated) {
    out(lineDiff(name, before, after))
    if (write) replaceText(name, after)
  }
  err(write ? `\nWritten. Run gatehouse check.\n` : `\nNothing is written. To rewrite, add --write.\n`)
  return 0
}

interface Migration {
  readonly name: string
  readonly before: string
  readonly after: string
}

/** The files whose settings have former names, before and after their migration. */
export function migrations(renames: readonly FoundRename[]): readonly Migration[] {
  return [...new Set(renames.map(({ file }) => file))].map((name) => {
    const before = readText(name)
    const after = migratedText(
      before,
      renames.filter(({ file }) => file === name),
    )
    return { name, before, after }
  })
}
