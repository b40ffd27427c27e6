import assert from 'node:assert/strict'
import type { Browser, Visit } from './browser.ts'

/** Fills in the page that asks for the password of an application, with its hidden fields. */
export function enter(browser: Browser, page: Visit, fields: Readonly<Record<string, string>>): Promise<Visit> {
  assert.match(page.url, /\/\.gatehouse\/application-sign-in\?/)
  const [, inside = ''] = /<form [^>]*>(.*?)<\/form>/s.exec(page.body) ?? []
  const hidden = [...inside.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)]
  const values = hidden.map(([, name = '', value = '']) => [name, value.replaceAll('&amp;', '&')] as [string, string])
  const { origin } = new URL(page.url)
  const body = new URLSearchParams([...values, ...Object.entries(fields)]).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin', origin }
  return browser.get(`${origin}/.gatehouse/application-sign-in`, { method: 'POST', headers, body })
}
