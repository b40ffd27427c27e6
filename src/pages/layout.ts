import type { Language } from '../config/model/pages.ts'
import { escape, hiddenHtml } from './page.ts'

/** The content of a built-in page. The layout escapes all texts. */
export interface PageContent {
  readonly language: Language
  readonly dir: 'ltr' | 'rtl'
  readonly style: string
  readonly name: string | undefined
  /** A `data:` URI. */
  readonly logo: string | undefined
  readonly title: string
  readonly text: string
  /** What has just happened. It gets the focus, so that screen readers say it first. */
  readonly outcome?: string | undefined
  /** HTML after the text. Its texts are escaped. */
  readonly html?: string | undefined
  /** Links to continue. The first one is what most people want, unless there is `html`. */
  readonly links: readonly PageLink[]
  /** No link comes first: all of them are buttons. */
  readonly areEqual?: boolean | undefined
  readonly support: { readonly label: string; readonly text: string; readonly url: string | undefined } | undefined
  /** Text in small print at the end of the page. */
  readonly note: string
  /** A script that runs when the page is complete. */
  readonly script?: string | undefined
}

export interface PageLink {
  readonly href: string
  readonly text: string
  /** The link opens in the whole window, also from a frame. */
  readonly opensWindow?: boolean
  /** It is a button that sends a POST request. */
  readonly post?: PagePost | undefined
}

/** The content of the POST request of a button. */
export interface PagePost {
  /** The names and values of hidden fields. */
  readonly fields: Readonly<Record<string, string>>
  /** Absent: that of forms (HTML §4.10.21). */
  readonly type?: 'text/plain'
}

/** The layout of all built-in pages. */
export function layout(content: PageContent): string {
  const { language, dir, style, name, title, text, outcome, html, links, areEqual, note, script } = content
  return [
    '<!doctype html>',
    `<html lang="${language}" dir="${dir}">`,
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="robots" content="noindex">',
    `<title>${escape(name === undefined ? title : `${title} – ${name}`)}</title>`,
    `<style>${style}</style>`,
    '</head>',
    '<body>',
    '<main>',
    ...brand(content),
    `<h1>${escape(title)}</h1>`,
    ...(outcome === undefined
      ? []
      : [`<p class="outcome" role="status" tabindex="-1" autofocus>${escape(outcome)}</p>`]),
    `<p>${escape(text)}</p>`,
    ...(html === undefined ? [] : [html]),
    ...links.map((link, index) =>
      link.post === undefined
        ? `<p>${linkHtml(link, areEqual === true || (index === 0 && html === undefined) ? 'first' : undefined)}</p>`
        : formHtml(link, link.post, index === 0 ? undefined : 'second'),
    ),
    ...support(content),
    `<p class="note">${escape(note)}</p>`,
    '</main>',
    ...(script === undefined ? [] : [`<script>${script}</script>`]),
    '</body>',
    '</html>',
    '',
  ].join('\n')
}

function brand({ logo, name }: PageContent): string[] {
  if (logo !== undefined) return [`<img src="${escape(logo)}" alt="${escape(name ?? '')}">`]
  return name === undefined ? [] : [`<p class="name">${escape(name)}</p>`]
}

function support({ support }: PageContent): string[] {
  if (support === undefined) return []
  const { label, text, url } = support
  return [`<p>${escape(label)} ${url === undefined ? escape(text) : linkHtml({ href: url, text })}</p>`]
}

function linkHtml({ href, text, opensWindow = false }: PageLink, className?: string): string {
  const attributes = `${className === undefined ? '' : ` class="${className}"`}${opensWindow ? ' target="_top"' : ''}`
  return `<a${attributes} href="${escape(href)}">${escape(text)}</a>`
}

function formHtml({ href, text }: PageLink, { fields, type }: PagePost, className?: string): string {
  const encoding = type === undefined ? '' : ` enctype="${type}"`
  const button = `<button${className === undefined ? '' : ` class="${className}"`} type="submit">${escape(text)}</button>`
  return `<form method="post" action="${escape(href)}"${encoding}>${hiddenHtml(fields)}<p>${button}</p></form>`
}
