const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Converts a duration of Go (`168h0m0s`, `1.5h`, `0`) to ms; `undefined` when it is invalid. */
export function goDurationMs(text: string): number | undefined {
  if (/^0+$/.test(text)) return 0
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) return undefined
  let total = 0
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
    total += Number(number) * (units[unit ?? ''] ?? 0)
  return Math.round(total)
}

/** Formats ms as a whole number with one unit: `7d`, `90m`. */
export function durationText(ms: number): string {
  const all = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
  ] as const
  const found = all.find(([, unit]) => ms >= unit && ms % unit === 0)
  return found === undefined ? `${ms}ms` : `${ms / found[1]}${found[0]}`
}
