import { type Language, languages } from '../config/model/pages.ts'

const weightSyntax = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i
const rangeSyntax = /^[a-z]{1,8}(?:-[a-z\d]{1,8})*$/

/**
 * The language of a page by `Accept-Language` (RFC 9110 §12.5.4), with the lookup of RFC 4647 §3.4:
 * `de-CH-1996, fr;q=0.8` → `de`. `fallback` when no language matches.
 */
export function chooseLanguage(acceptLanguage: string | undefined, fallback: Language): Language {
  const ranges = readRanges(acceptLanguage ?? '')
  const unwanted = new Set(ranges.filter(({ weight }) => weight === 0).map(({ range }) => range))
  // The sort is stable: ranges of the same weight keep their order.
  for (const { range, weight } of ranges.toSorted((a, b) => b.weight - a.weight)) {
    if (weight === 0) break
    const found = lookUp(range)
    if (found !== undefined && !unwanted.has(found)) return found
  }
  return fallback
}

/**
 * The locale for dates and numbers in a page of this language: with the region or script that the
 * client prefers, as in `en-GB`, or the language alone.
 */
export function chooseLocale(acceptLanguage: string | undefined, language: Language): string {
  const regional = new RegExp(`^${language}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\\d{3}))?$`)
  const ranges = readRanges(acceptLanguage ?? '').filter(({ range, weight }) => weight > 0 && regional.test(range))
  return ranges.toSorted((a, b) => b.weight - a.weight)[0]?.range ?? language
}

function readRanges(header: string): { readonly range: string; readonly weight: number }[] {
  return header.split(',').flatMap((part) => {
    const [range = '', ...parameters] = part
      .toLowerCase()
      .split(';')
      .map((text) => text.trim())
    const [weight = 'q=1'] = parameters
    const number = weightSyntax.exec(weight)?.[1]
    // "*" names no language (RFC 4647 §3.4). Malformed ranges are ignored.
    return number === undefined || !rangeSyntax.test(range) ? [] : [{ range, weight: Number(number) }]
  })
}

/** Removes subtags from the end of the range until it is a known language. */
function lookUp(range: string): Language | undefined {
  const subtags = range.split('-')
  while (subtags.length > 0) {
    const found = languages.find((language) => language === subtags.join('-'))
    if (found !== undefined) return found
    subtags.pop()
    // A single-letter subtag introduces the next one, so both are removed (RFC 4647 §3.4).
    if (subtags.at(-1)?.length === 1) subtags.pop()
  }
  return undefined
}
