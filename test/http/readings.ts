import fc from 'fast-check'

/** All readings of a forwarded path by any application. */
export function everyReading(path: string): string[][] {
  const decoded = [path]
  for (let round = 0; round < 3; round++) {
    const bytes = (decoded.at(-1) ?? '').replaceAll(/%([\da-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(parseInt(hex, 16)),
    )
    decoded.push(bytes)
  }
  const utf8 = decoded.map((text) => Buffer.from(text, 'latin1').toString('utf8'))
  return [...decoded, ...utf8]
    .flatMap((text) => [text, text.replaceAll('\\', '/')])
    .flatMap((text) => [text, text.replaceAll(/;[^/]*/g, '')])
    .flatMap((text) => [text, text.split('\0')[0] ?? '', text.replaceAll('\0', '')])
    .flatMap((text) => [text, text.split('?')[0] ?? '', text.split('#')[0] ?? ''])
    .flatMap((text) => [resolved(text, (segment) => segment), resolved(text, onWindows)])
}

function onWindows(segment: string): string {
  const trimmed = segment.trim()
  return trimmed === '.' || trimmed === '..' ? trimmed : trimmed.replace(/[.\s]+$/, '')
}

function resolved(path: string, name: (segment: string) => string): string[] {
  const stack: string[] = []
  const segments = path.split('/').map(name)
  for (const segment of segments) {
    if (segment === '..') stack.pop()
    else if (segment !== '' && segment !== '.') stack.push(segment)
  }
  return ['', '.', '..'].includes(segments.at(-1) ?? '') ? [...stack, ''] : stack
}

/** Parts of hostile paths. */
const building = fc.constantFrom(
  ...['/', '/', '/', '//', '.', '..', '...', '%2e', '%2E', '%252e', '%25252E', '%2f', '%252F', '%5c', '%255c', '\\'],
  ...[';', ';x=1', '%3b', '%253b', '%3f', '%253F', '%23', '?', '#', '%00', '%2500', '%20', '%2520', '%09', '%0a'],
  ...['public', 'public', 'admin', 'admin', 'a', 'b', 'p', 'ublic', '%70', '%2570', '%61', '%2561', '%25%36%31'],
  ...['%c0%ae', '%c0%af', '%ef%bc%8e', '%a0', '%c2%a0', '%c3%a9', '%', '%u002e', '*', ':', '@', '~', 'http://h'],
)
/** Paths that an attacker may send. */
export const hostile = fc
  .tuple(fc.constantFrom('/', '/public', '/public/', '/admin', '/public/x/'), fc.array(building, { maxLength: 9 }))
  .map(([start, parts]) => start + parts.join(''))
