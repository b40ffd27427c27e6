import type { PagesConfig } from '../config/model.ts'
import type { Response } from '../http/response.ts'
import { escape, htmlResponse, sourceHash } from './page.ts'
import { styleOf } from './style.ts'

/**
 * The content of the administration page. Times are in ms since the epoch. The page escapes all
 * texts.
 */
export interface Overview {
  readonly at: number
  readonly version: string
  /** The host of `external_url`. */
  readonly host: string
  /** `silent`: the IDs of processes that do not respond. */
  readonly processes: {
    readonly responding: number
    readonly silent: readonly number[]
    readonly countingSince: number
  }
  /** Whether the sessions are shared with other replicas. */
  readonly isShared: boolean
  readonly query: SessionQuery
  readonly sessions: SessionsView | { readonly fault: string }
  readonly providers: readonly ProviderView[]
  readonly upstreams: readonly UpstreamView[]
  readonly logouts: readonly LogoutView[]
}

/** Which sessions to list. An empty text matches all. */
export interface SessionQuery {
  readonly sub: string
  readonly sid: string
}

export interface SessionsView {
  readonly found: readonly SessionView[]
  /** Why the list is incomplete. `undefined`: it is complete. */
  readonly cut: 'too_many' | 'too_slow' | undefined
  /** The approximate number of sessions; `undefined`: counting would take too long. */
  readonly count: number | undefined
  /** Whether these are the latest sessions. */
  readonly areLatest: boolean
}

export interface SessionView {
  readonly key: string
  readonly sub: string
  /** The value of the claim `admin.page.show_claim`. */
  readonly person: string | undefined
  /** The name of the provider. Absent: there is only one. */
  readonly provider: string | undefined
  readonly sid: string | undefined
  /** Whether it is bound to a key of the device. */
  readonly isBound: boolean
  readonly origin: string | undefined
  readonly began: number
  readonly ends: number
  /**
   * The value that the form for ending the session sends. It is valid for this session and for a
   * limited time.
   */
  readonly order: string
}

export interface ProviderView {
  /** Its name in the configuration. */
  readonly name: string
  readonly issuer: string
  readonly algorithm: string | undefined
  /** How many processes have read the discovery document. */
  readonly foundBy: number
  readonly readAt: number | undefined
  readonly faults: readonly string[]
  /** `knownBy`: how many processes have the key. */
  readonly keys: readonly (KeyView & { readonly knownBy: number })[]
  readonly keysReadAt: number | undefined
}

export interface KeyView {
  readonly kid?: string | undefined
  readonly kty: string
  readonly alg?: string | undefined
  readonly use?: string | undefined
  readonly since: number
}

export interface UpstreamView {
  readonly name: string
  readonly url: string
  /** How long it took to connect, in ms, or why it failed. */
  readonly connection: number | string
  readonly requests: number
  readonly serverErrors: number
  readonly failures: number
  readonly waiting: number
  readonly lastFailure: { readonly at: number; readonly code: string; readonly request: string } | undefined
}

export interface LogoutView {
  readonly at: number
  readonly by: 'logout_token' | 'frame'
  readonly outcome: 'obeyed' | 'replayed' | 'refused' | 'not_now'
  readonly sid?: string | undefined
  readonly sub?: string | undefined
  readonly ended?: number | undefined
  readonly reason?: string | undefined
  readonly request?: string | undefined
}

/** The result of an order to end a session. */
export interface OrderOutcome {
  readonly status: number
  readonly title: string
  readonly text: string
}

/**
 * The pages for administration. They are in English, have no script and load nothing.
 */
export class AdminPages {
  readonly #style: string
  readonly #styleHash: string

  constructor({ colours }: Pick<PagesConfig, 'colours'>) {
    this.#style = styleOf(colours) + wideStyle
    this.#styleHash = sourceHash(this.#style)
  }

  overview(overview: Overview): Response {
    const { host, sessions, providers, upstreams, logouts, processes } = overview
    return this.#response(200, `Gatehouse at ${host}`, [
      about(overview),
      section('sessions', 'Sessions', sessionsHtml(sessions, overview)),
      ...providers.map((provider) => {
        const [id, title] = providers.length === 1 ? ['', ''] : [`-${provider.name}`, ` ${provider.name}`]
        const html = providerHtml(provider, `provider${id}`, processes.responding, overview.at)
        return section(`provider${id}`, `Provider${title}`, html)
      }),
      section('upstreams', 'Upstreams', upstreamsHtml(upstreams, overview)),
      section(
        'logouts',
        `Last logouts from the provider${providers.length === 1 ? '' : 's'}`,
        logoutsHtml(logouts, overview),
      ),
    ])
  }

  outcome({ status, title, text }: OrderOutcome): Response {
    return this.#response(status, title, [`<p>${escape(text)}</p>`, '<p><a href="/">Back to the overview</a></p>'])
  }

  #response(status: number, title: string, parts: readonly string[]): Response {
    const html = [
      '<!doctype html>',
      '<html lang="en">',
      '<head>',
      '<meta charset="utf-8">',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      '<meta name="robots" content="noindex">',
      `<title>${escape(title)}</title>`,
      `<style>${this.#style}</style>`,
      '</head>',
      '<body>',
      '<main>',
      `<h1>${escape(title)}</h1>`,
      ...parts,
      '</main>',
      '</body>',
      '</html>',
      '',
    ].join('\n')
    const policy = { styleHashes: [this.#styleHash], images: false, formTargets: [] }
    const response = htmlResponse(status, html, 'en', policy)
    // The page that opened this one must have no access to its window.
    return { ...response, headers: { ...response.headers, 'Cross-Origin-Opener-Policy': 'same-origin' } }
  }
}

const wideStyle = `
body { padding-top: 2rem }
main { max-width: 76rem }
h2 { font-size: 1.2rem; margin: 2rem 0 .75rem }
.wide { overflow-x: auto; margin: 0 0 1.25rem }
.wide:focus-visible, input:focus-visible { outline: 3px solid var(--text); outline-offset: 2px }
table { border-collapse: collapse; width: 100%; font-size: .9375rem; overflow-wrap: normal }
caption { text-align: start; font-size: .875rem; padding: 0 0 .5rem }
th, td { text-align: start; vertical-align: top; padding: .375rem .75rem .375rem 0; border-top: 1px solid rgb(128 128 128 / .35) }
td.action, th.action { position: sticky; inset-inline-end: 0; background: var(--surface); padding-inline: .5rem 0 }
td.number, th.number { text-align: end; font-variant-numeric: tabular-nums }
code { font-size: .875rem; overflow-wrap: anywhere }
time { white-space: nowrap }
td code { display: inline-block; min-width: 9rem }
form.search { display: flex; flex-wrap: wrap; gap: .75rem 1rem; align-items: end; margin: 0 0 1rem }
label { font-size: .875rem }
input { display: block; font: inherit; color: inherit; background: var(--background); border: 1px solid rgb(128 128 128 / .8); border-radius: .375rem; padding: .375rem .5rem; margin: .25rem 0 0; width: 16rem; max-width: 100%; box-sizing: border-box }
td button { padding: .125rem .75rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0 0 1rem }
dt { font-weight: 600 }
dd { margin: 0; overflow-wrap: anywhere }
strong { font-weight: 600 }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr } th[scope=row] { min-width: 8rem; overflow-wrap: anywhere } }
`

function about({ at, version, processes, isShared }: Overview): string {
  const { responding, silent } = processes
  const lines = [
    `<p>Version ${escape(version)}, ${count(responding, 'process', 'processes')}, ${time(at)}. Times are UTC. <a href="/">Refresh</a></p>`,
  ]
  if (silent.length > 0)
    lines.push(
      `<p role="status"><strong>${silent.length === 1 ? 'A process does' : `${silent.length} processes do`} not respond (pid ${silent.join(', ')}):</strong> their data about the provider, the upstreams and logouts is missing here.</p>`,
    )
  if (isShared)
    lines.push(
      '<p>Sessions are those of all replicas that share the store. Everything else is about this replica. Each replica has its own page.</p>',
    )
  return lines.join('\n')
}

function sessionsHtml(sessions: Overview['sessions'], { query, at }: Overview): string {
  const isNarrowed = query.sub !== '' || query.sid !== ''
  const form = [
    '<form class="search" method="get" action="/">',
    `<label>Person (<code>sub</code>) <input name="sub" autocomplete="off" value="${escape(query.sub)}"></label>`,
    `<label>Session of the provider (<code>sid</code>) <input name="sid" autocomplete="off" value="${escape(query.sid)}"></label>`,
    '<button type="submit">Search</button>',
    '</form>',
  ].join('\n')
  if ('fault' in sessions) return `${form}\n<p role="status"><strong>${escape(sessions.fault)}</strong></p>`
  const { found, cut, count: total, areLatest } = sessions
  if (found.length === 0 && cut === undefined)
    return `${form}\n<p>${isNarrowed ? 'No session matches.' : 'Nobody is signed in.'}</p>`
  const caption = {
    none: count(found.length, 'session', 'sessions'),
    too_many: `${areLatest ? `The latest ${found.length}` : `${found.length}, in no order,`} of ${total === undefined ? 'many' : `about ${total}`} sessions. Search for a person or a session to see others`,
    too_slow: `${found.length} of more sessions, because reading all of them takes too long. Search for a person or a session to see others`,
  }[cut ?? 'none']
  return `${form}\n${table(
    'sessions',
    caption,
    ['Person', 'Signed in', 'Ends at the latest', 'At', 'Session of the provider', 'Key', '!Action'],
    found.map((session) => sessionRow(session, at)),
  )}`
}

function sessionRow(
  { key, sub, person, provider, sid, origin, isBound, began, ends, order }: SessionView,
  at: number,
): readonly string[] {
  return [
    person === undefined ? escape(sub) : `${escape(person)}<br><code>${escape(sub)}</code>`,
    `${time(began)}<br>${age(began, at)}`,
    time(ends),
    `${origin === undefined ? 'not known' : escape(origin)}${isBound ? '<br>bound to a device' : ''}`,
    `${provider === undefined ? '' : `${escape(provider)}<br>`}${sid === undefined ? 'none' : `<code>${escape(sid)}</code>`}`,
    `<code>${escape(key)}</code>`,
    [
      '<form method="post" action="/sessions/end">',
      `<input type="hidden" name="order" value="${escape(order)}">`,
      `<button type="submit" aria-label="${escape(`End the session of ${person ?? sub}, ${key}`)}">End</button>`,
      '</form>',
    ].join(''),
  ]
}

function providerHtml(provider: ProviderView, id: string, processes: number, at: number): string {
  const { issuer, algorithm, foundBy, readAt, faults, keys, keysReadAt } = provider
  const ofAll = (some: number) => (processes === 1 ? '' : `, by ${some} of ${processes} processes`)
  const terms: [string, string][] = [
    ['Issuer', escape(issuer)],
    ['Discovery', foundBy === 0 ? '<strong>not found yet</strong>' : `found${ofAll(foundBy)}`],
    ...(readAt === undefined ? [] : [['Read', `${time(readAt)}, ${age(readAt, at)}`] as [string, string]]),
    ...(algorithm === undefined ? [] : [['Algorithm', escape(algorithm)] as [string, string]]),
    ...faults.map((fault): [string, string] => ['Fault', `<strong>${escape(fault)}</strong>`]),
    [
      'Keys',
      keysReadAt === undefined
        ? 'not read yet: the gateway reads them when it verifies the first token'
        : `read ${time(keysReadAt)}, ${age(keysReadAt, at)}`,
    ],
  ]
  const list = `<dl>${terms.map(([term, text]) => `<dt>${term}</dt><dd>${text}</dd>`).join('')}</dl>`
  if (keys.length === 0) return list
  const rows = keys.map(({ kid, kty, alg, use, since, knownBy }) => [
    kid === undefined ? 'none' : `<code>${escape(kid)}</code>`,
    escape(kty),
    escape(alg ?? 'not given'),
    escape(use ?? 'not given'),
    `${time(since)}, ${age(since, at)}${knownBy === processes ? '' : `<br>known to ${knownBy} of ${processes} processes`}`,
  ])
  const caption = `${count(keys.length, 'key', 'keys')}, the oldest first`
  return `${list}\n${table(id, caption, ['Key ID', 'Type', 'Algorithm', 'Use', 'First seen here'], rows)}`
}

function upstreamsHtml(upstreams: readonly UpstreamView[], { at, processes }: Overview): string {
  const rows = upstreams.map((upstream) => {
    const { name, url, connection, requests, serverErrors, failures, waiting, lastFailure } = upstream
    return [
      escape(name),
      `<code>${escape(url)}</code>`,
      typeof connection === 'number'
        ? `yes, in ${connection.toFixed(1)} ms`
        : `<strong>no: ${escape(connection)}</strong>`,
      number(requests),
      number(serverErrors),
      number(failures),
      number(waiting),
      lastFailure === undefined
        ? 'none'
        : `${time(lastFailure.at)}, ${age(lastFailure.at, at)}<br>${escape(lastFailure.code)}<br>request <code>${escape(lastFailure.request)}</code>`,
    ]
  })
  const heads = ['Upstream', 'Address', 'Reachable', '#Requests', '#5xx', '#No response', '#Waiting', 'Last failure']
  return table('upstreams', `Counted since ${time(processes.countingSince)}`, heads, rows)
}

const ways = { logout_token: 'Logout Token', frame: 'front-channel frame' } as const

function logoutsHtml(logouts: readonly LogoutView[], { at, processes }: Overview): string {
  if (logouts.length === 0) return `<p>None since ${time(processes.countingSince)}.</p>`
  const rows = logouts.map(({ at: when, by, outcome, sid, sub, ended = 0, reason, request }) => [
    `${time(when)}<br>${age(when, at)}`,
    ways[by],
    [
      ...(sid === undefined ? [] : [`sid <code>${escape(sid)}</code>`]),
      ...(sub === undefined ? [] : [`sub ${escape(sub)}`]),
    ].join('<br>') || 'not verified',
    {
      obeyed: ended === 0 ? 'matched no session' : `ended ${count(ended, 'session', 'sessions')}`,
      replayed: 'repeated: it had an effect before',
      refused: `<strong>refused</strong>: ${escape(reason ?? '')}`,
      not_now: `<strong>not carried out</strong>, the provider must send it again: ${escape(reason ?? '')}`,
    }[outcome],
    request === undefined ? '' : `<code>${escape(request)}</code>`,
  ])
  return table('logouts', `Since ${time(processes.countingSince)}, the latest first`, logoutHeads, rows)
}

const logoutHeads = ['Received', 'By', 'Names', 'Result', 'Request']

function section(id: string, title: string, content: string): string {
  return `<section>\n<h2 id="${id}">${title}</h2>\n${content}\n</section>`
}

/**
 * A table. Heads and cells are HTML. "#" before a head marks a column of numbers, "!" a column of
 * actions, which stays visible. A table that is too wide scrolls, also by keyboard.
 */
function table(id: string, caption: string, heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const className = (column: number) => {
    const kind = { '#': 'number', '!': 'action' }[heads[column]?.[0] ?? '']
    return kind === undefined ? '' : ` class="${kind}"`
  }
  const head = heads.map((text, column) => `<th scope="col"${className(column)}>${text.replace(/^[#!]/, '')}</th>`)
  const body = rows.map((cells) => {
    const [first = '', ...others] = cells
    const rest = others.map((cell, column) => `<td${className(column + 1)}>${cell}</td>`)
    return `<tr><th scope="row">${first}</th>${rest.join('')}</tr>`
  })
  return [
    `<div class="wide" role="region" aria-labelledby="${id}" tabindex="0">`,
    `<table><caption>${caption}</caption>`,
    `<thead><tr>${head.join('')}</tr></thead>`,
    `<tbody>${body.join('\n')}</tbody>`,
    '</table></div>',
  ].join('\n')
}

function number(value: number): string {
  return String(value)
}

function count(value: number, one: string, many: string): string {
  return `${value} ${value === 1 ? one : many}`
}

function time(at: number): string {
  const iso = new Date(at).toISOString()
  return `<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`
}

function age(since: number, at: number): string {
  const seconds = Math.max(0, Math.round((at - since) / 1000))
  if (seconds < 2) return 'just now'
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`
  return `${Math.floor(seconds / 86_400)} days ago`
}
