import { escape } from '../../src/entries/admin-page.ts'

/** A row of a table. The first cell is its head. With an id, an update finds the row again. */
export interface Row {
  readonly id?: string
  readonly cells: readonly string[]
}

/** What the first character of a head says about its column. */
const marks = new Map(Object.entries({ '#': ' class="number"', '!': ' class="action"' }))
/** The same, for the head alone. */
const orders = new Map(Object.entries({ '+': ' aria-sort="ascending"', '-': ' aria-sort="descending"' }))

/**
 * A table. Heads and cells are HTML. "#" before a head marks a column of numbers, "!" a column of
 * actions, which stays visible; "+" and "-" say that the rows are sorted by it, ascending or
 * descending. A table that is too wide scrolls, also by keyboard. In a narrow window each row is a
 * card; the roles keep it a table for assistive technology.
 */
export function table(id: string, caption: string, heads: readonly string[], rows: readonly Row[]): string {
  const names = heads.map((text) => text.replace(/^[#!+-]/, ''))
  const markOf = (column: number) => heads[column]?.[0] ?? ''
  const head = names.map((name, column) => {
    const attributes = marks.get(markOf(column)) ?? orders.get(markOf(column)) ?? ''
    return `<th scope="col" role="columnheader"${attributes}>${name}</th>`
  })
  const body = rows.map(({ id: rowId, cells: [first = '', ...others] }) => {
    const rest = others.map((cell, index) => {
      const name = names[index + 1]?.replaceAll(/<[^>]*>/g, '')
      return `<td role="cell" data-head="${name}"${marks.get(markOf(index + 1)) ?? ''}>${cell}</td>`
    })
    const attribute = rowId === undefined ? '' : ` id="${escape(rowId)}"`
    return `<tr${attribute} role="row"><th scope="row" role="rowheader">${first}</th>${rest.join('')}</tr>`
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
