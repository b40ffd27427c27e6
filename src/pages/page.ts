import { sha256 } from '../core/random.ts'

/** An answer that the gateway gives itself, ready for any kind of response: nothing has been sent yet. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body: string
}

/** What stands on a page. Everything is escaped, so any text may be given. */
export interface PageContent {
  readonly title: string
  readonly text: string
  readonly link?: PageLink | undefined
  readonly form?: PageForm | undefined
  /** The origins whose pages may show it in a frame; otherwise none may. */
  readonly framedBy?: readonly string[] | undefined
  /** By what an operator finds the request in the log. */
  readonly requestId?: string | undefined
}

export interface PageLink {
  readonly href: string
  readonly text: string
}

/** A form that is sent with POST. */
export interface PageForm {
  readonly action: string
  readonly button: string
  /** Other origins that answering the form may redirect to. */
  readonly goesOnTo?: readonly string[] | undefined
}

const style = `
:root { color-scheme: light dark }
body { font: 1.0625rem/1.6 system-ui, sans-serif; margin: 0; padding: 15vh 1.5rem 3rem; color: #1d2330; background: #f2f4f7 }
main { max-width: 30rem; margin: 0 auto; padding: 2.25rem 2.5rem 1.25rem; background: #fff; border: 1px solid #dde1e8; border-radius: .75rem }
h1 { font-size: 1.5rem; font-weight: 600; line-height: 1.3; margin: 0 0 .75rem }
p { margin: 0 0 1.25rem }
a { color: #1a4fa3 }
button { font: inherit; color: #fff; background: #1a4fa3; border: 0; border-radius: .375rem; padding: .5rem 1.25rem; cursor: pointer }
a:focus-visible, button:focus-visible { outline: 3px solid #f0a020; outline-offset: 2px }
small { color: #5b6475 }
@media (prefers-color-scheme: dark) {
  body { color: #e4e7ee; background: #14171e }
  main { background: #1c2029; border-color: #303644 }
  a { color: #8ab4f8 }
  button { color: #0f1420; background: #8ab4f8 }
  small { color: #98a1b3 }
}
`

// Content Security Policy names a hash in plain base64 with its padding; 32 bytes need one "=".
const styleHash = `sha256-${sha256(style).replaceAll('-', '+').replaceAll('_', '/')}=`

/** The one layout of all pages: no script, no image, nothing loaded from anywhere. */
export function page(status: number, content: PageContent): Answer {
  return {
    status,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': contentSecurityPolicy(content),
      ...ownAnswerHeaders,
      // "no-referrer" would send the form with "Origin: null" (Fetch, "append a request Origin header"), and the sign-out
      // URL has to see that the form came from here.
      'Referrer-Policy': content.form ? 'same-origin' : 'no-referrer',
    },
    body: html(content),
  }
}

/** Stand on each answer that the gateway gives itself: it is about one visitor and one moment, and no part of another site's page. */
export const ownAnswerHeaders = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const

function contentSecurityPolicy({ form, framedBy = [] }: PageContent): string {
  // Browsers hold the redirects that answer a form against form-action too, and sign-out goes on to the provider.
  const formAction = form ? ["'self'", ...(form.goesOnTo ?? [])].join(' ') : "'none'"
  return [
    "default-src 'none'",
    `style-src '${styleHash}'`,
    `form-action ${formAction}`,
    `frame-ancestors ${framedBy.length > 0 ? framedBy.join(' ') : "'none'"}`,
    "base-uri 'none'",
  ].join('; ')
}

function html({ title, text, link, form, requestId }: PageContent): string {
  const parts = [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="robots" content="noindex">',
    `<title>${escape(title)}</title>`,
    `<style>${style}</style>`,
    '</head>',
    '<body>',
    '<main>',
    `<h1>${escape(title)}</h1>`,
    `<p>${escape(text)}</p>`,
  ]
  if (form) parts.push(formHtml(form))
  if (link) parts.push(`<p><a href="${escape(link.href)}">${escape(link.text)}</a></p>`)
  if (requestId !== undefined) parts.push(`<p><small>Request ${escape(requestId)}</small></p>`)
  parts.push('</main>', '</body>', '</html>', '')
  return parts.join('\n')
}

function formHtml({ action, button }: PageForm): string {
  return [
    `<form method="post" action="${escape(action)}">`,
    `<p><button type="submit">${escape(button)}</button></p>`,
    '</form>',
  ].join('\n')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Safe as text and inside a quoted attribute. */
export function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')
}
