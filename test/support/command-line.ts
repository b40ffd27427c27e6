import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** A folder of a test's own, with these files in it. */
export function folderWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-cli-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** What a command said, and where. */
export interface Said {
  out: string
  err: string
}

/** A terminal that keeps what is said to it. */
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
