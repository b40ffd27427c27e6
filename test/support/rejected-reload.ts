import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { reloadOnChange, type ReloadParts } from '../../src/cli/reload.ts'
import type { Environment } from '../../src/config/document/report.ts'
import type { LogFields } from '../../src/observe/log.ts'

/** Reloads a file as a running gateway does; resolves to what it logs about the rejection. */
export function rejectedReload(
  t: TestContext,
  { file, env }: { readonly file: string; readonly env: Environment },
  apply: ReloadParts['apply'] = () => assert.fail('the file is not valid'),
): Promise<LogFields> {
  return new Promise((resolve) => {
    const before = process.listeners('SIGHUP')
    const unexpected = () => assert.fail('the file is not valid')
    const log = { debug: unexpected, info: unexpected, warn: unexpected, announce: unexpected }
    reloadOnChange(
      { file, env },
      { log: { ...log, error: (_message, fields = {}) => resolve(fields) }, files: new Map(), apply },
    )
    const added = process.listeners('SIGHUP').filter((listener) => !before.includes(listener))
    t.after(() => added.forEach((listener) => process.off('SIGHUP', listener)))
    for (const listener of added) listener('SIGHUP')
  })
}
