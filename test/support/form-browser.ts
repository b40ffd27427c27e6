import assert from 'node:assert/strict'
import type { Browser, Visit } from './browser.ts'
import { until } from './until.ts'

/** The content of a form. */
export const typed = new URLSearchParams({ item: 'Blaue Säge & Öl', note: 'zwei\r\nZeilen' }).toString()
/** Its header field. */
export const form = { 'content-type': 'application/x-www-form-urlencoded' }

export interface Submission {
  readonly path?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Submits a form of the page `/forms`, and returns the first response. */
export function submit(
  browser: Browser,
  url: string,
  { path = '/orders?new=1', body = typed, headers = {} }: Submission = {},
) {
  const origin = new URL(url).origin
  const sent = { ...form, 'sec-fetch-site': 'same-origin', origin, referer: `${origin}/forms`, ...headers }
  return browser.send(`${origin}${path}`, { method: 'POST', headers: sent, body })
}

/** Follows the redirects and refreshes of a response, signing in when the provider asks. */
export async function goOn(browser: Browser, from: Visit): Promise<Visit> {
  const next = from.headers['location'] ?? /url=(.*)$/.exec(String(from.headers['refresh'] ?? ''))?.[1]
  if (next === undefined) return from
  const headers = { 'sec-fetch-site': 'same-origin' }
  let page = await browser.get(new URL(String(next), from.url).href, { headers })
  // A sign-in that begins within a moment of the logout is rejected. Its page offers another try.
  await until('signed in', async () => {
    const retry = /href="([^"]*)">Try again/.exec(page.body)?.[1]
    if (!page.body.includes('Your session was ended while you were signing in')) return true
    page = await browser.get(new URL(String(retry).replaceAll('&amp;', '&'), page.url).href, { headers })
    return false
  })
  return page
}

/** Presses a button of the page about a kept request. */
export function press(browser: Browser, page: Visit, button: 'Send now' | 'Do not send'): Promise<Visit> {
  const forms = [...page.body.matchAll(/<form method="post" action="([^"]*)"( enctype="text\/plain")?>(.*?)<\/form>/g)]
  const [, action = '', plain, inside = ''] =
    forms.find(([whole]) => whole.includes(`>${button}<`)) ?? assert.fail(page.body)
  const [, name = '', value = ''] = /name="([^"]*)" value="([^"]*)"/.exec(inside) ?? []
  const url = new URL(action.replaceAll('&amp;', '&'), page.url)
  const type = plain === undefined ? 'application/x-www-form-urlencoded' : 'text/plain'
  return browser.send(url.href, {
    method: 'POST',
    headers: { 'content-type': type, 'sec-fetch-site': 'same-origin', origin: url.origin, referer: page.url },
    body: plain === undefined ? `${name}=${value}` : `${name}=${value}\r\n`,
  })
}
