import type { Browser } from '../core/session-lists.ts'

/**
 * The products of `User-Agent` by their names. The first that matches counts, because most browsers
 * name others too: Edge names Chrome, and Chrome names Safari.
 */
const products: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bEdg(?:e|A|iOS)?\/(\d+)/, 'Edge'],
  [/\b(?:OPR|OPiOS)\/(\d+)/, 'Opera'],
  [/\bSamsungBrowser\/(\d+)/, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, 'Firefox'],
  [/\b(?:Headless)?(?:Chrome|CriOS)\/(\d+)/, 'Chrome'],
  [/\bVersion\/(\d+)[\d.]* (?:Mobile\/\w+ )?Safari\//, 'Safari'],
]

const systems: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bWindows\b/, 'Windows'],
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
]

/**
 * The browser that a `User-Agent` names (RFC 9110 §10.1.5). Other clients have the name of their
 * first product, such as `curl 8`. The client chooses what it sends, so this is no evidence.
 * @returns `undefined` when the value names no product
 */
export function browserOf(userAgent: string | undefined): Browser | undefined {
  if (userAgent === undefined) return undefined
  const system = systems.find(([pattern]) => pattern.test(userAgent))?.[1]
  for (const [pattern, name] of products) {
    const version = pattern.exec(userAgent)?.[1]
    if (version !== undefined) return { name: `${name} ${version.slice(0, 4)}`, system }
  }
  const [, product, version] = /^([\w.-]{1,40})(?:\/(\d{1,4}))?/.exec(userAgent) ?? []
  return product === undefined ? undefined : { name: version === undefined ? product : `${product} ${version}`, system }
}

/** The browser in English, such as `Firefox 140 on Windows`. */
export function browserText(userAgent: string | undefined): string | undefined {
  const browser = browserOf(userAgent)
  return browser?.system === undefined ? browser?.name : `${browser.name} on ${browser.system}`
}
