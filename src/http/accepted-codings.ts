/**
 * The content codings that a client accepts, of those that are offered, the most wanted first (RFC
 * 9110 §12.5.3). Codings that it wants equally stay in their order.
 * @param field `Accept-Encoding`; absent: the client gets content without a coding
 */
export function acceptedCodings<T extends string>(
  field: string | readonly string[] | undefined,
  offered: readonly T[],
): readonly T[] {
  if (field === undefined) return []
  const weights = new Map<string, number>()
  for (const part of [field].flat().join(',').toLowerCase().split(',')) {
    const [, coding, weight = '1'] = /^\s*([^\s;]+)\s*(?:;\s*q=([\d.]+)\s*)?$/.exec(part) ?? []
    if (coding !== undefined) weights.set(coding.replace(/^x-gzip$/, 'gzip'), Number(weight))
  }
  const weightOf = (coding: string) => weights.get(coding) ?? weights.get('*') ?? 0
  const identity = weights.get('identity') ?? 0
  return offered
    .filter((coding) => weightOf(coding) > 0 && weightOf(coding) >= identity)
    .toSorted((a, b) => weightOf(b) - weightOf(a))
}
