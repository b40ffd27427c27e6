// The logs of the replicas beside a history: each worker has a file of its own.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface LogLine {
  readonly file: string
  /** From 1. */
  readonly line: number
  /** A replica with the number of its worker, such as `a.1`; without one, `a`. */
  readonly worker: string
}

/** The first line about each request that browsers and orders name, by this name. */
export function readLogs(folder: string): ReadonlyMap<string, LogLine> {
  const found = new Map<string, LogLine>()
  for (const file of readdirSync(folder).filter((name) => /^[a-d](\.\d+)?\.log$/.test(name)))
    for (const [index, text] of readFileSync(join(folder, file), 'utf8').split('\n').entries()) {
      const [, id] = /"request(?:_id)?":"([a-z]+\d+)"/.exec(text) ?? []
      if (id !== undefined && !found.has(id))
        found.set(id, { file, line: index + 1, worker: file.replace(/\.log$/, '') })
    }
  return found
}
