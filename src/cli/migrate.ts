import { closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { FoundRename } from '../config/document/report.ts'
import { loadConfig } from '../config/load.ts'
import { migratedText } from '../config/migrated-text.ts'
import type { ReadFor } from '../config/setting-versions.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { type CommandInput, reader, readOptions, takeNone } from './command.ts'
import { readText } from './given-file.ts'
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

/** Replaces the text of a file in one step: a gateway that reads it gets the old or the new one. */
function replaceText(file: string, text: string): void {
  try {
    const target = realpathSync(file)
    const fresh = join(dirname(target), `.${basename(target)}.${process.pid}`)
    const descriptor = openSync(fresh, 'wx', statSync(target).mode & 0o777)
    try {
      writeSync(descriptor, text)
      fsyncSync(descriptor)
      renameSync(fresh, target)
    } finally {
      closeSync(descriptor)
      rmSync(fresh, { force: true })
    }
  } catch (error) {
    throw new OperatorError(`${file} cannot be written: ${reason(error)}`, { cause: error })
  }
}
