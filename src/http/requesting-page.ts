/** Fields with which a browser describes the page that makes a request. Scripts cannot set them. */
export interface RequestingPage {
  readonly secFetchSite: string | undefined
  readonly origin?: string | undefined
  readonly referer?: string | undefined
}

/**
 * How each check decides whether a page of this site makes a request:
 * - `sites`: the values of `Sec-Fetch-Site` that pass; `none`: a typed address, or a bookmark.
 * - `referer`: whether `Referer` counts where a browser sends neither that field nor an `Origin`.
 * - `unknown`: whether a request without these fields passes, because it is not from a browser.
 */
const checks = {
  application: { sites: ['same-origin', 'none'], referer: false, unknown: true },
  endpoint: { sites: ['same-origin', 'none'], referer: true, unknown: true },
  // Nobody types the address of a form.
  endpoint_form: { sites: ['same-origin'], referer: true, unknown: true },
  // A cookie for frames counts for pages of its own origin only.
  frame: { sites: ['same-origin'], referer: false, unknown: false },
  kept_form: { sites: ['same-origin'], referer: false, unknown: false },
  clear_cookies: { sites: ['same-origin'], referer: false, unknown: true },
  admin_page: { sites: ['same-origin', 'none'], referer: false, unknown: true },
  admin_form: { sites: ['same-origin'], referer: false, unknown: false },
  admin_json: { sites: ['same-origin'], referer: false, unknown: true },
  admin_stream: { sites: ['same-origin'], referer: false, unknown: true },
} as const

/**
 * Whether a page of one of these origins makes a request (Fetch Metadata, RFC 6454), as the check
 * wants it. `Sec-Fetch-Site` decides where the browser sends it.
 */
export function isFromSite(
  check: keyof typeof checks,
  { secFetchSite, origin, referer }: RequestingPage,
  origins: readonly string[],
): boolean {
  const { sites, referer: readsReferer, unknown } = checks[check]
  if (secFetchSite !== undefined) return (sites as readonly string[]).includes(secFetchSite)
  const isHidden = readsReferer && referer !== undefined && (origin === undefined || origin === 'null')
  const from = isHidden ? originOf(referer) : origin
  return from === undefined ? unknown : origins.includes(from)
}

/**
 * The origins of an upstream at a host. The scheme comes from the configuration, so it is right
 * even behind a proxy that is not in `trusted_proxies`.
 */
export function originsAt({ origin, protocol }: URL, host: string): readonly string[] {
  return [origin, `${protocol}//${host}`]
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'null'
}
