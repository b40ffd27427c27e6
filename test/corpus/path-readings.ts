/**
 * Returns every path that some application could read from a request target. This models
 * applications, not the gateway.
 */
export function pathReadings(target: string, { foldsCase }: { readonly foldsCase: boolean }): string[] {
  const literal = target.split(/[?#]/, 1)[0] ?? ''
  const path = /^[a-z]+:\/\/[^/]*(\/.*)?$/i.exec(literal)
  const forms = [literal, path === null ? literal : (path[1] ?? '/')]
  for (let times = 0; times < 3; times += 1) forms.push(decoded(forms.at(-1) ?? ''))
  const steps: readonly ((text: string) => readonly string[])[] = [
    (text) => [text, text.replaceAll('\\', '/')],
    (text) => [text, text.replaceAll(/;[^/]*/g, '')],
    (text) => [text, text.split('\0', 1)[0] ?? '', text.replaceAll('\0', '')],
    (text) => [text, text.split('?', 1)[0] ?? '', text.split('#', 1)[0] ?? ''],
    (text) => [resolved(foldsCase ? text.toLowerCase() : text)],
  ]
  return [...new Set(steps.reduce<readonly string[]>((texts, step) => texts.flatMap(step), forms))]
}

/** Decodes each `%XX` to one character. Invalid sequences stay. */
function decoded(text: string): string {
  return text.replaceAll(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
}

/** Removes dot segments, empty segments, spaces around names and trailing dots. */
function resolved(path: string): string {
  const kept: string[] = []
  for (const segment of path
    .trim()
    .split('/')
    .map((name) => name.trim())) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment.replace(/[.\s]+$/, ''))
  }
  return `/${kept.join('/')}`
}
