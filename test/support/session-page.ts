import assert from 'node:assert/strict'
import type { Browser, Visit } from './browser.ts'
import { form, goOn } from './form-browser.ts'

/** A form of a page: where it leads, and its hidden fields. */
export interface PageForm {
  readonly action: string
  readonly fields: Readonly<Record<string, string>>
  /** The name of its button. */
  readonly button: string
}

/** The forms of a page. */
export function formsOf({ body, url }: Pick<Visit, 'body' | 'url'>): readonly PageForm[] {
  return [...body.matchAll(/<form method="post" action="([^"]*)">(.*?)<button([^>]*)>([^<]*)<\/button>/gs)].map(
    ([, action = '', inside = '', attributes = '', text = '']) => ({
      action: new URL(plain(action), url).href,
      fields: Object.fromEntries(
        [...inside.matchAll(/name="([^"]*)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [
          name,
          plain(value),
        ]),
      ),
      button: plain(/aria-label="([^"]*)"/.exec(attributes)?.[1] ?? text),
    }),
  )
}

/** Presses the first button of a page with this text, and goes on to the page after it. */
export async function press(
  browser: Browser,
  page: Visit,
  text: RegExp,
  headers: Readonly<Record<string, string>> = {},
): Promise<Visit> {
  const found = formsOf(page).find(({ button }) => text.test(button)) ?? assert.fail(page.body)
  return goOn(browser, await sendForm(browser, found, headers))
}

/** Sends a form as a browser does for the page of the same origin. */
export function sendForm(
  browser: Browser,
  { action, fields }: Pick<PageForm, 'action' | 'fields'>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Visit> {
  return browser.send(action, {
    method: 'POST',
    headers: { ...form, 'sec-fetch-site': 'same-origin', origin: new URL(action).origin, ...headers },
    body: new URLSearchParams(fields).toString(),
  })
}

function plain(text: string): string {
  const characters: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_whole, name: string) => characters[name] ?? '')
}
