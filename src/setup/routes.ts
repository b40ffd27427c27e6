/** The paths of the rules that replace a pattern, or the reason why rules cannot express it. */
export type TranslatedRoute =
  | { readonly paths: readonly string[]; readonly methods?: readonly string[]; readonly difference?: string }
  | { readonly why: string }

/**
 * Translates `METHOD=^/regular-expression` to paths of rules. Only patterns that are paths are
 * translated, because a rule that is too wide would make protected paths public.
 */
export function translateRoute(route: string): TranslatedRoute {
  const [, method, negated, pattern = ''] = /^(?:([A-Za-z]+)?(!)?=)?([^]*)$/.exec(route) ?? []
  if (negated !== undefined) return { why: 'it matches all paths except one, which rules cannot express' }
  const translated = translatePattern(pattern)
  return method === undefined || 'why' in translated ? translated : { ...translated, methods: [method.toUpperCase()] }
}

/** Translates `^/regular-expression` in the same way. */
export function translatePattern(pattern: string): TranslatedRoute {
  if (!pattern.startsWith('^')) return { why: 'it matches anywhere in a path, but rules match from the start' }
  // "^/a$" matches that path. "^/a/" and "^/a/.*" match the paths below it. "^/a(/.*)?$" matches
  // both.
  const [, literal = '', below, end] = /^\^(.*?)(\/\.\*|\(\/\.\*\)\?)?(\$)?$/.exec(pattern) ?? []
  // In a regular expression a dot matches any character; the rule matches a dot only.
  const path = literal.replaceAll(/\\([./_-])/g, '$1')
  if (!/^(?:\/[\w.~-]*)+$|^$/.test(path) || path.includes('//'))
    return { why: 'rules use paths, not regular expressions' }
  if (below === undefined && end !== undefined && path === '') return { why: 'it matches no path' }
  if (below === undefined && end !== undefined) return { paths: [path] }
  const itself = path.replace(/\/$/, '')
  if (itself === '' || below === '(/.*)?') return { paths: [`${itself}/*`] }
  // "/a/*" would also match "/a".
  if (below !== undefined || path !== itself) return { paths: [`${itself}/`, `${itself}/*/*`] }
  const difference = `${pattern} also matched paths with a longer name, such as ${path}-other; the rule matches ${path} and the paths below it`
  return { paths: [`${path}/*`], difference }
}
