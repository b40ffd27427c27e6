import { breakable, escape } from '../../pages/page.ts'
import { age, count, identifier, idOf, table, time, type Row } from './html.ts'
import type { Overview, SessionsView, SessionView } from './view.ts'

/** The search field. It is not part of an update, so a text that is being typed stays. */
export function searchForm({ query: { text, sub, sid } }: Overview): string {
  const value = text || sub || sid
  return [
    '<form class="search" role="search" method="get" action="/">',
    '<label>Search sessions: person, <code>sub</code>, <code>sid</code>, browser, address, upstream',
    `<input name="q" type="search" autocomplete="off" value="${escape(value)}"></label>`,
    '<button type="submit">Search</button>',
    ...(value === '' ? [] : ['<a href="/">Show all sessions</a>']),
    '</form>',
  ].join('\n')
}

export function sessionsHtml({ sessions, query, at, processes }: Overview): string {
  if ('fault' in sessions) return `<p role="status"><strong>${escape(sessions.fault)}</strong></p>`
  const isNarrowed = query.text !== '' || query.sub !== '' || query.sid !== ''
  const { found } = sessions
  const caption = captionOf(sessions, query.text !== '')
  if (found.length > 0)
    return table(
      'sessions',
      caption,
      heads,
      found.map((session) => sessionRow(session, at)),
    )
  if (sessions.cut !== undefined) return `<p><strong>${caption}</strong></p>`
  if (processes.responding === 0) return '<p>No process responds.</p>'
  return isNarrowed ? '<p>No session matches.</p>' : '<p>Nobody is signed in.</p>'
}

const heads = ['Person', 'Browser', 'Last activity', 'Signed in', 'At', 'Session', '!Action']

function captionOf({ cut, found, count: total, read, areLatest }: SessionsView, isText: boolean): string {
  const all = total === undefined ? 'many' : `about ${total}`
  if (cut === undefined) return count(found.length, 'session', 'sessions')
  if (isText && cut === 'too_many')
    return `The first ${found.length} sessions that match, in no order. Search for more of the text`
  if (isText)
    return `${found.length} found. The search was cut after ${read} of ${all} sessions, because reading all of them takes too long. Others may match. Search for the whole <code>sub</code>, <code>sid</code> or key: these are found in a store of any size`
  if (cut === 'too_many')
    return `${areLatest ? `The latest ${found.length}` : `${found.length}, in no order,`} of ${all} sessions. Search for a person or a session to see others`
  return `${found.length} of ${all} sessions, because reading all of them takes too long. Search for a person or a session to see others`
}

function sessionRow(session: SessionView, at: number): Row {
  const { key, sub, person, provider, sid, origin, browser, address, isBound, lastUsed, began, ends } = session
  const id = idOf('session', key)
  const cells = [
    person === undefined
      ? `<strong>${identifier('sub', sub)}</strong>`
      : `<strong>${breakable(escape(person))}</strong><br>${identifier('sub', sub)}`,
    [
      escape(browser ?? 'not known'),
      ...(address === undefined ? [] : [breakable(escape(address))]),
      isBound ? 'bound to a device' : 'not bound',
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
