/** What rules can say in place of a pattern, one for each path, or why they cannot. */
export type TranslatedRoute =
  | { readonly paths: readonly string[]; readonly methods?: readonly string[]; readonly difference?: string }
  | { readonly why: string }

/**
 * A path of a rule out of `METHOD=^/regular-expression`. Only patterns that are paths are taken:
 * where one of these opens a path to everybody, a translation that is too wide would be a hole.
 */
export function translateRoute(route: string): TranslatedRoute {
  const [, method, negated, pattern = ''] = /^(?:([A-Za-z]+)?(!)?=)?([^]*)$/.exec(route) ?? []
  if (negated !== undefined) return { why: 'it is for every path but this one, and rules name paths' }
  const methods = method === undefined ? {} : { methods: [method.toUpperCase()] }
  if (!pattern.startsWith('^')) return { why: 'it matches anywhere in a path, and rules begin at its beginning' }
  // "^/a$" is that path; "^/a/", "^/a/.*" and "^/a(/.*)?$" are what lies below it, and the last one
  // it, too.
  const [, literal = '', below, end] = /^\^(.*?)(\/\.\*|\(\/\.\*\)\?)?(\$)?$/.exec(pattern) ?? []
  // A dot that stands for any character is narrowed to a dot.
  const path = literal.replaceAll(/\\([./_-])/g, '$1')
  if (!/^(?:\/[\w.~-]*)+$|^$/.test(path) || path.includes('//'))
    return { why: 'it is a regular expression, and rules have paths' }
  if (below === undefined && end !== undefined && path === '') return { why: 'it matches no path' }
  if (below === undefined && end !== undefined) return { paths: [path], ...methods }
  const itself = path.replace(/\/$/, '')
  if (itself === '' || below === '(/.*)?') return { paths: [`${itself}/*`], ...methods }
  // "/a/*" would be "/a", too.
  if (below !== undefined || path !== itself) return { paths: [`${itself}/`, `${itself}/*/*`], ...methods }
  const difference = `${route} also matched paths that go on in the same name, such as ${path}-other; the rule matches ${path} and what lies below it`
  return { paths: [`${path}/*`], ...methods, difference }
}
