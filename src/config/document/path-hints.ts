import { parsePathPattern } from '../../core/patterns.ts'

/** A hint for an invalid path: it lacks its "/", or it has the syntax of another proxy. */
export function hintForPath(text: string): string | undefined {
  if (/^\*+$/.test(text)) return 'for every path, write /*'
  const [, afterHost] = /^https?:\/\/[^/]+(\/.*)?$/i.exec(text) ?? []
  if (afterHost !== undefined) return `write the path alone: ${afterHost}; the host belongs in hosts of the upstream`
  const [, method, rest = text] = /^([A-Z]+)(?:=| +)(.+)$/.exec(text) ?? []
  const meant = intendedPaths(rest)
  if (meant.every((path) => path !== text && isPathPattern(path))) {
    if (method !== undefined) return `did you mean { path: ${meant.join(', ')}, methods: [${method}] }?`
    const paths = meant.map((path) => `"${path}"`).join(' and ')
    const wider =
      meant.some((path) => path.endsWith('*')) && !text.endsWith('*') ? ' "*" at the end matches everything below.' : ''
    return `did you mean ${paths}${meant.length > 1 ? ', a rule each' : ''}?${wider}`
  }
  if (/(?:^|[ *+)/])\\?\.(?:[a-z]|\()/.test(rest))
    return 'an ending is written as /static/*.css, with a rule for each ending'
  return /[\^|()[\]{}<>\\$]|\.[*+]/.test(rest)
    ? 'a path is not a regular expression: /admin/* matches everything below /admin, and in /a/*/edit "*" matches one segment'
    : undefined
}

/** A hint for an invalid path of an upstream, in which "*" is not allowed. */
export function hintForFolder(text: string): string | undefined {
  const [folder = '', ...others] = intendedPaths(text).map((path) => path.replace(/\*$/, ''))
  const isGood = others.length === 0 && folder !== text && !folder.includes('*') && isPathPattern(folder)
  return isGood ? `did you mean "${folder}"?` : undefined
}

/**
 * Translates paths of nginx, regular expressions, globs and routers. The result may still be
 * invalid.
 */
function intendedPaths(text: string): readonly string[] {
  const isPrefix = /^(?:~\*? *)?\^/.test(text) && !text.endsWith('$')
  const path = text
    .replace(/^(?:=|~\*?|\^~) *(?=[\^/])/, '')
    .replaceAll(/^\^|\$$/g, '')
    .replaceAll(/\\([./_-])/g, '$1')
    .replaceAll('[^/]', '.')
    .replace(/\/?(?:\(\/?\.[*+]\)\??|\.[*+])$/, '/*')
    .replace(/(?<=[^/*])\*$/, '/*')
    .replaceAll(/\/{2,}/g, '/')
    .split('/')
    .map((segment) => (placeholder.test(segment) ? '*' : segment))
    .join('/')
  const rooted = /^\w/.test(path) ? `/${path}` : path
  return alternatives(isPrefix && !rooted.endsWith('*') ? `${rooted.replace(/\/$/, '')}/*` : rooted)
}

/**
 * A segment that matches any segment: `:id`, `{id}`, `<int:id>`, `[0-9]+`, `\d+`, `.+`, in brackets
 * or not.
 */
const placeholder = /^(?::\w+|\{\w+\}|<[^<>]+>|\(?(?:\[[^[\]]+\]|\\[dw]|\.)[*+]\)?)$/

/** Expands the first `(a|b)` or `{a,b}`. */
function alternatives(path: string): readonly string[] {
  const [whole = '', byBar, byComma] = /\((?:\?:)?([\w.|-]+)\)|\{([\w.-]+(?:,[\w.-]+)+)\}/.exec(path) ?? []
  const names = byBar?.split('|') ?? byComma?.split(',')
  return names === undefined ? [path] : names.map((name) => path.replace(whole, name))
}

function isPathPattern(text: string): boolean {
  try {
    parsePathPattern(text)
    return true
  } catch {
    return false
  }
}
