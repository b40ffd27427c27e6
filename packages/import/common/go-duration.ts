import { amountOf, durationText } from '../../../src/entries/import.ts'

/** A duration of Go (`168h0m0s`, `1.5h`) in ms; `undefined` for another text. */
export function goDurationMs(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) return undefined
  let total = 0
  for (const [, number, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
    total += Number(number) * amountOf(`1${unit}`)
  return Math.round(total)
}

/** A time limit of an upstream; `undefined` for another text, or out of range. */
export function timeLimit(text: string): string | undefined {
  const ms = goDurationMs(text)
  return ms !== undefined && ms >= 10 && ms <= 86_400_000 ? durationText(ms) : undefined
}
