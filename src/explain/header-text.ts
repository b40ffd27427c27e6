import type { HeaderSource } from '../config/model/header.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'

/**
 * Decodes a field value, in which each character is one byte on the wire: as UTF-8 when it is
 * valid, otherwise as Latin-1.
 */
function headerText(value: string): string {
  const bytes = Buffer.from(value, 'latin1')
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return value
  }
}

/** Converts a list of alternating names and values to pairs with decoded values. */
export function headerPairs(lines: readonly string[]): [name: string, text: string][] {
  const pairs: [string, string][] = []
  for (let at = 0; at + 1 < lines.length; at += 2)
    pairs.push([lines[at] as string, headerText(lines[at + 1] as string)])
  return pairs
}

/** {@link headerPairs} of headers that the gateway sets, without secrets and signatures. */
export function shownHeaders(
  lines: readonly string[],
  { headers, rules, signedIdentity }: Pick<UpstreamConfig, 'headers' | 'rules' | 'signedIdentity'>,
): [name: string, text: string][] {
  const all = [...headers, ...rules.flatMap((rule) => rule.headers ?? [])]
  const hidden = new Map(all.flatMap(({ name, source }) => (isSecret(source) ? [[name, '(secret)']] : [])))
  if (signedIdentity !== undefined) hidden.set(signedIdentity.header, '(signed)')
  return headerPairs(lines).map(([name, text]) => [name, hidden.get(name) ?? text])
}

function isSecret(source: HeaderSource): boolean {
  const isToken = source.kind === 'bearer' || source.kind === 'exchanged'
  return isToken || source.kind === 'basic' || (source.kind === 'constant' && source.isSecret)
}
