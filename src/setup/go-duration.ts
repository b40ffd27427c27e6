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
