import { age, count, idOf, table, time, type Row } from './admin-html.ts'
import type { Overview, SessionsView, SessionView } from './admin-view.ts'
import { escape } from './page.ts'

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

const heads = [
  'Person',
  'Browser',
  'Last activity',
  'Signed in, ends at the latest',
  'At',
  'Session of the provider, key',
  '!Action',
]

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
  const { key, sub, person, provider, sid, origin, browser, address, isBound, lastUsed, began, ends, order } = session
  const cells = [
    person === undefined ? escape(sub) : `${escape(person)}<br><code>${escape(sub)}</code>`,
    [
      escape(browser ?? 'not known'),
      ...(address === undefined ? [] : [escape(address)]),
      isBound ? 'bound to a device' : 'not bound',
    ].join('<br>'),
    lastUsed === undefined ? 'within the idle timeout' : `${time(lastUsed)}<br>${age(lastUsed, at)}`,
    `${time(began)}<br>${age(began, at)}<br>ends ${time(ends)}`,
    origin === undefined ? 'not known' : escape(origin),
    `${provider === undefined ? '' : `${escape(provider)}<br>`}${sid === undefined ? 'no sid' : `sid <code>${escape(sid)}</code>`}<br>key <code>${escape(key)}</code>`,
    [
      '<form method="post" action="/sessions/end">',
      `<input type="hidden" name="order" value="${escape(order)}">`,
      `<button type="submit" aria-label="${escape(`End the session of ${person ?? sub}, ${key}`)}">End</button>`,
      '</form>',
    ].join(''),
  ]
  return { id: idOf('session', key), cells }
}
