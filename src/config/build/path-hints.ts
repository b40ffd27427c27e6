import { parsePathPattern } from '../../core/path-pattern.ts'

/**
 * What was probably meant by a path that is none: its "/" was forgotten, or it is as other proxies
 * write it.
 */
export function hintForPath(written: string): string | undefined {
  const [, afterHost] = /^https?:\/\/[^/]+(\/.*)?$/i.exec(written) ?? []
  if (afterHost !== undefined) return `the host stands in hosts of the upstream, and the path is "${afterHost}"`
  const [, method, rest = written] = /^([A-Z]+)(?:=| +)(.+)$/.exec(written) ?? []
  const meant = pathsMeantBy(rest)
  if (meant.every((path) => path !== written && isPathPattern(path))) {
    if (method !== undefined) return `did you mean { path: ${meant.join(', ')}, methods: [${method}] }?`
    const paths = meant.map((path) => `"${path}"`).join(' and ')
    const wider =
      meant.some((path) => path.endsWith('*')) && !written.endsWith('*') ? ' At the end "*" is everything below.' : ''
    return `did you mean ${paths}${meant.length > 1 ? ', a rule each' : ''}?${wider}`
  }
  if (/(?:^|[ *+)/])\\?\.(?:[a-z]|\()/.test(rest))
    return 'no path says how a path ends: name the folder that these lie in, such as /static/*'
  return /[\^|()[\]{}<>\\$]|\.[*+]/.test(rest)
    ? 'a path is no regular expression: /admin/* is everything below /admin, and in /a/*/edit stands "*" for one segment'
    : undefined
}

/** The same for what an application lies below: there is no "*" in it. */
export function hintForFolder(written: string): string | undefined {
  const [folder = '', ...others] = pathsMeantBy(written).map((path) => path.replace(/\*$/, ''))
  const isGood = others.length === 0 && folder !== written && !folder.includes('*') && isPathPattern(folder)
  return isGood ? `did you mean "${folder}"?` : undefined
}

/**
 * The paths of nginx, of regular expressions, of globs and of routers, said in ours; some are none
 * even so.
 */
function pathsMeantBy(text: string): readonly string[] {
  const isPrefix = /^(?:~\*? *)?\^/.test(text) && !text.endsWith('$')
  const path = text
    .replace(/^(?:=|~\*?|\^~) *(?=[\^/])/, '')
    .replaceAll(/^\^|\$$/g, '')
    .replaceAll(/\\([./_-])/g, '$1')
    .replaceAll('[^/]', '.')
    .replace(/\/?(?:\(\/?\.[*+]\)\??|\.[*+])$/, '/*')
    .replace(/(?<=[^/*])\*$/, '/*')
    .split('/')
    .map((segment) => (placeholder.test(segment) ? '*' : segment))
    .join('/')
  const rooted = /^\w/.test(path) ? `/${path}` : path
  return alternatives(isPrefix && !rooted.endsWith('*') ? `${rooted.replace(/\/$/, '')}/*` : rooted)
}

/**
 * A segment that stands for any: `:id`, `{id}`, `<int:id>`, `[0-9]+`, `\d+`, `.+`, in brackets or
 * not.
 */
const placeholder = /^(?::\w+|\{\w+\}|<[^<>]+>|\(?(?:\[[^[\]]+\]|\\[dw]|\.)[*+]\)?)$/

/** `(a|b)` and `{a,b}`, once. */
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
