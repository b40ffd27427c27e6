import { escape } from '../../src/entries/admin-page.ts'

/** A row of a table. The first cell is its head. With an id, an update finds the row again. */
export interface Row {
  readonly id?: string
  readonly cells: readonly string[]
}

/** What a character before a head says about its column. */
const classes = new Map(Object.entries({ '#': 'number', '!': 'action', '~': 'more' }))
/** The same, for the head alone. */
const orders = new Map(Object.entries({ '+': ' aria-sort="ascending"', '-': ' aria-sort="descending"' }))

/**
 * A table. Heads and cells are HTML. "#" before a head marks a column of numbers, "!" a column of
 * actions, which stays visible; "+" and "-" say that the rows are sorted by it, ascending or
 * descending. A table that is too wide scrolls, also by keyboard. In a narrow window each row is a
 * card; the roles keep it a table for assistive technology. There, the cells of columns with "~"
 * are visible only in rows that a person has opened.
 */
export function table(id: string, caption: string, heads: readonly string[], rows: readonly Row[]): string {
  const columns = heads.map((head) => {
    const [marks = ''] = /^[#!~+-]*/.exec(head) ?? []
    const names = [...marks].flatMap((mark) => classes.get(mark) ?? [])
    const order = [...marks].map((mark) => orders.get(mark) ?? '').join('')
    return {
      title: head.slice(marks.length),
      order,
      attribute: names.length === 0 ? '' : ` class="${names.join(' ')}"`,
    }
  })
  const head = columns.map(
    ({ title, order, attribute }) => `<th scope="col" role="columnheader"${attribute}${order}>${title}</th>`,
  )
  const hasMore = heads.some((text) => text.startsWith('~'))
  const body = rows.map(({ id: rowId, cells: [first = '', ...others] }) => {
    const rest = others.map((cell, index) => {
      const { title = '', attribute = '' } = columns[index + 1] ?? {}
      return `<td role="cell" data-head="${textOf(title)}"${attribute}>${cell}</td>`
    })
    const attribute = rowId === undefined ? '' : ` id="${escape(rowId)}"`
    const more = hasMore ? moreHtml(`More about ${textOf(first)}`) : ''
    return `<tr${attribute} role="row"><th scope="row" role="rowheader">${first}${more}</th>${rest.join('')}</tr>`
  })
  return [
    `<div class="wide" role="region" aria-labelledby="${id}" tabindex="0">`,
    `<table role="table"><caption>${caption}</caption>`,
    `<thead role="rowgroup"><tr role="row">${head.join('')}</tr></thead>`,
    `<tbody role="rowgroup">${body.join('\n')}</tbody>`,
    '</table></div>',
  ].join('\n')
}

/**
 * What shows the rest of a row or of a section in a narrow window. The style hides the rest, which
 * is beside it, so that a wide window shows everything.
 */
export function moreHtml(name: string): string {
  return `<details class="more"><summary aria-label="${name}"></summary></details>`
}

/** The text of HTML, without its buttons. */
function textOf(html: string): string {
  return html
    .replaceAll(/<button.*?<\/button>|<wbr>/g, '')
    .replaceAll(/(?:<[^>]*>|\s)+/g, ' ')
    .trim()
}

/**
 * An identifier with a button that copies it. The middle of a long one is hidden by the style, so
 * that selecting, searching and screen readers still get all of it. `what` names it.
 */
export function identifier(what: string, value: string): string {
  const code =
    value.length > 18 ? `<span>${escape(value.slice(0, -6))}</span>${escape(value.slice(-6))}` : escape(value)
  return `<span class="id"><code>${code}</code> <button type="button" class="copy" aria-label="Copy ${what}">Copy</button></span>`
}

/** A list of terms and their descriptions, which are HTML. */
export function descriptions(terms: readonly (readonly [term: string, html: string])[]): string {
  return `<dl>${terms.map(([term, html]) => `<dt>${term}</dt><dd>${html}</dd>`).join('')}</dl>`
}

export function count(value: number, one: string, many: string): string {
  return `${value} ${value === 1 ? one : many}`
}

/** @param at in ms since the epoch */
export function time(at: number, { seconds = true } = {}): string {
  const iso = new Date(at).toISOString()
  return `<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, seconds ? 19 : 16)}</time>`
}

/** How long ago something was. It changes once a minute at most, so that updates are rare. */
export function age(since: number, at: number): string {
  const seconds = Math.max(0, Math.round((at - since) / 1000))
  if (seconds < 60) return 'less than 1 min ago'
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`
  return `${Math.floor(seconds / 86_400)} days ago`
}

/** An id for an element, from any text. */
export function idOf(...parts: readonly (string | number)[]): string {
  return parts.map((part) => String(part).replaceAll(/[^\w-]/g, '_')).join('-')
}
