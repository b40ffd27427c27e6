import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Creates a folder for one test, with these files. */
export function folderWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-cli-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** The output of a command, by stream. */
export interface Said {
  out: string
  err: string
}

/** A terminal that records its output. */
export function recordingTerminal(env: Readonly<Record<string, string | undefined>> = {}) {
  const said: Said = { out: '', err: '' }
  return {
    said,
    terminal: {
      env,
      out: (text: string) => void (said.out += text),
      err: (text: string) => void (said.err += text),
    },
  }
}
