import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isObject } from '../../core/json.ts'
import type { Steps } from '../../core/steps.ts'
import { explainFileError } from './files.ts'
import { readYaml } from './read-yaml.ts'
import type { Report, Setting } from './report.ts'

/**
 * Adds the upstreams of the included files to a document. Their names must be unique across all
 * files.
 */
export function* withIncluded(document: object, file: string, report: Report): Steps<object> {
  const { include, upstreams = {} } = document as { include?: unknown; upstreams?: unknown }
  // The schema reports a value of another type.
  if (!Array.isArray(include) || !isObject(upstreams)) return document
  const files = include.flatMap((pattern: unknown, index) =>
    typeof pattern === 'string' ? filesOf(pattern, file, report.at('/include').below(index)) : [],
  )
  const included: (object | undefined)[] = []
  for (const name of new Set(files)) {
    included.push(yield* readYaml(name, report.at('/upstreams')))
    yield
  }
  return { ...document, upstreams: Object.assign({}, upstreams, ...included) as object }
}

function filesOf(pattern: string, file: string, at: Setting): string[] {
  const path = pattern.startsWith('/') ? pattern : join(dirname(file), pattern)
  const [folder, name] = [dirname(path), basename(path)]
  if (folder.includes('*')) {
    at.error('has a "*" in the name of a folder; it is allowed only in the name of the file')
    return []
  }
  at.report.recordFile(name.includes('*') ? folder : path)
  if (!name.includes('*')) {
    if (existsSync(path)) return [path]
    at.error(`${path} does not exist`)
    return []
  }
  try {
    // Mounts and editors create hidden files.
    const found = readdirSync(folder).filter((entry) => !entry.startsWith('.') && matches(entry, name))
    if (found.length === 0) at.error(`${path} matches no file`)
    return found.toSorted().map((entry) => join(folder, entry))
  } catch (error) {
    at.error(`the folder ${folder} ${explainFileError(error)}`)
    return []
  }
}

function matches(entry: string, pattern: string): boolean {
  const [first = '', ...others] = pattern.split('*')
  const last = others.pop() ?? ''
  if (!entry.startsWith(first) || !entry.endsWith(last) || entry.length < first.length + last.length) return false
  let rest = entry.slice(first.length, entry.length - last.length)
  for (const part of others) {
    const found = rest.indexOf(part)
    if (found < 0) return false
    rest = rest.slice(found + part.length)
  }
  return true
}
