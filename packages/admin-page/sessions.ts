import {
  breakable,
  escape,
  type Overview,
  type SessionColumn,
  type SessionQuery,
  type SessionsView,
  type SessionView,
} from '../../src/entries/admin-page.ts'
import { age, count, identifier, idOf, table, time, type Row } from './html.ts'

/** The search field. It is not part of an update, so a text that is being typed stays. */
export function searchForm({ query: { text, sub, sid, sort } }: Overview): string {
  const value = text || sub || sid
  return [
    '<form class="search" role="search" method="get" action="/">',
    '<label>Search sessions: person, <code>sub</code>, <code>sid</code>, browser, address, upstream',
    `<input name="q" type="search" autocomplete="off" value="${escape(value)}"></label>`,
    `<input type="hidden" name="sort" value="${sort}">`,
    '<button type="submit">Search</button>',
    ...(value === '' ? [] : ['<a href="/">Show all sessions</a>']),
    '</form>',
  ].join('\n')
}

export function sessionsHtml({ sessions, query, at, processes }: Overview): string {
  if ('fault' in sessions) return `<p role="status"><strong>${escape(sessions.fault)}</strong></p>`
  const isNarrowed = query.text !== '' || query.sub !== '' || query.sid !== ''
  const { found, page, pages } = sessions
  if (found.length > 0) {
    const rows = found.map((session) => sessionRow(session, at))
    return (
      table('sessions', captionOf(sessions, query.text !== ''), headsOf(query), rows) + pagesHtml(query, page, pages)
    )
  }
  if (sessions.isCut) return `<p><strong>${captionOf(sessions, query.text !== '')}</strong></p>`
  if (processes.responding === 0) return '<p>No process responds.</p>'
  return isNarrowed ? '<p>No session matches.</p>' : '<p>Nobody is signed in.</p>'
}

/** The URL of a page of the list. */
function urlOf({ sub, sid, text, sort }: SessionQuery, page = 1): string {
  const params = Object.entries({ sub, sid, q: text, sort, page: String(page) })
  return escape(`/?${String(new URLSearchParams(params.filter(([, value]) => value !== '')))}#sessions`)
}

/** The heads of columns that can sort the list are links, which also reverse its order. */
function headsOf(query: SessionQuery): readonly string[] {
  const head = (column: SessionColumn, title: string, [order, reverse]: string) => {
    const mark = { [column]: order, [`-${column}`]: reverse }[query.sort] ?? ''
    return `${mark}<a href="${urlOf({ ...query, sort: query.sort === column ? `-${column}` : column })}">${title}</a>`
  }
  const [person, activity] = [head('person', 'Person', '+-'), head('activity', 'Last activity', '-+')]
  return [person, '~Browser', activity, `~${head('began', 'Signed in', '-+')}`, 'At', '~Session', '!Action']
}

function pagesHtml(query: SessionQuery, page: number, pages: number): string {
  if (pages === 1) return ''
  const link = (to: number, name: string) =>
    to < 1 || to > pages ? '' : `<li><a href="${urlOf(query, to)}">${name}</a></li>`
  const links = link(page - 1, 'Previous page') + link(page + 1, 'Next page')
  return `<nav aria-label="Pages of the list"><ul><li>Page ${page} of ${pages}</li>${links}</ul></nav>`
}

function captionOf({ isCut, listed, count: total, read }: SessionsView, isText: boolean): string {
  const all = total === undefined ? 'many' : `about ${total}`
  if (!isCut) return count(listed, 'session', 'sessions')
  if (isText)
    return `${listed} found. The search was cut after ${read} of ${all} sessions, because reading all of them takes too long. Others may match. Search for the whole <code>sub</code>, <code>sid</code> or key: these are found in a store of any size`
  return `${listed} of ${all} sessions, because reading all of them takes too long. Search for a person or a session to see others`
}

function sessionRow(session: SessionView, at: number): Row {
  const { key, sub, person, provider, sid, origin, browser, address } = session
  const { bound_at, last_used_at: lastUsed, created_at: began, absolute_expires_at: ends } = session
  const id = idOf('session', key)
  const cells = [
    person === undefined
      ? `<strong>${identifier('sub', sub)}</strong>`
      : `<strong>${breakable(escape(person))}</strong><br>${identifier('sub', sub)}`,
    [
      escape(browser ?? 'not known'),
      ...(address === undefined ? [] : [breakable(escape(address))]),
      bound_at === undefined ? 'not bound' : 'bound to a device',
    ].join('<br>'),
    lastUsed === undefined ? 'within the idle timeout' : `${age(lastUsed, at)}<br>${minute(lastUsed)}`,
    `${age(began, at)}<br>${minute(began)}<br>until ${minute(ends)}`,
    origin === undefined ? 'not known' : breakable(escape(origin.replace(/^https:\/\//, ''))),
    `${provider === undefined ? '' : `${escape(provider)}<br>`}${sid === undefined ? 'no sid' : `sid ${identifier('sid', sid)}`}<br>key ${identifier('key', key)}`,
    endHtml(session, `${id}-end`),
  ]
  return { id, cells }
}

function minute(at: number): string {
  return time(at, { seconds: false })
}

/** The button that ends a session, and the question that it asks, also without the script. */
function endHtml({ key, sub, person, browser, address, order }: SessionView, id: string): string {
  const who = escape(person ?? sub)
  const where = [browser ?? 'A browser that is not known', ...(address === undefined ? [] : [address])].join(', ')
  return [
    `<div id="${id}" popover role="dialog" aria-labelledby="${id}-title">`,
    `<h3 id="${id}-title">End the session of ${who}?</h3>`,
    `<p>${escape(where)}: the person is signed out there at once, on every replica, and at the provider if possible. This cannot be undone, but the person can sign in again.</p>`,
    '<form method="post" action="/sessions/end">',
    `<input type="hidden" name="order" value="${escape(order)}">`,
    `<button class="second" type="button" popovertarget="${id}" popovertargetaction="hide" autofocus>Cancel</button>`,
    '<button class="danger" type="submit">End the session</button></form></div>',
    `<button class="second danger" type="button" popovertarget="${id}" aria-label="End the session of ${who}, ${escape(key)}">End</button>`,
  ].join('')
}
