import { breakable, escape, innerMetrics, type Overview, type ProviderView } from '../../src/entries/admin-page.ts'
import { age, count, descriptions, identifier, table, time, type Row } from './html.ts'

/** The version, the processes, and what is missing. */
export function aboutHtml({ at, version, processes, isShared }: Overview): string {
  const { responding, silent } = processes
  const lines = [
    `<p>Version ${escape(version)}, ${count(responding, 'process', 'processes')}, ${time(at)}. Times are UTC.</p>`,
  ]
  if (silent.length > 0)
    lines.push(
      `<p role="status"><strong>${silent.length === 1 ? 'A process does' : `${silent.length} processes do`} not respond (pid ${silent.join(', ')}):</strong> their data about the provider, the upstreams and ended sessions is missing here.</p>`,
    )
  if (isShared)
    lines.push(
      '<p>Sessions are those of all replicas that share the store. Everything else is about this replica. Each replica has its own page.</p>',
    )
  return lines.join('\n')
}

/** The state of a provider. `id` is that of the heading of its section. */
export function providerHtml(provider: ProviderView, id: string, processes: number, at: number): string {
  const { issuer, algorithm, foundBy, readAt, faults, keys, keysReadAt } = provider
  const ofAll = (some: number) => (processes === 1 ? '' : `, by ${some} of ${processes} processes`)
  const terms: (readonly [string, string])[] = [
    ['Issuer', escape(issuer)],
    ['Discovery', foundBy === 0 ? '<strong>not found yet</strong>' : `found${ofAll(foundBy)}`],
    ...(readAt === undefined ? [] : [['Read', `${time(readAt)}, ${age(readAt, at)}`] as const]),
    ...(algorithm === undefined ? [] : [['Algorithm', escape(algorithm)] as const]),
    ...faults.map((fault) => ['Fault', `<strong>${escape(fault)}</strong>`] as const),
    [
      'Keys',
      keysReadAt === undefined
        ? 'not read yet: the gateway reads them when it verifies the first token'
        : `read ${time(keysReadAt)}, ${age(keysReadAt, at)}`,
    ],
  ]
  const list = descriptions(terms)
  if (keys.length === 0) return list
  const rows = keys.map(({ kid, kty, alg, use, since, knownBy }) =>
    cells(
      kid === undefined ? 'none' : identifier('key ID', kid),
      escape(kty),
      escape(alg ?? 'not given'),
      escape(use ?? 'not given'),
      `${time(since)}, ${age(since, at)}${knownBy === processes ? '' : `<br>known to ${knownBy} of ${processes} processes`}`,
    ),
  )
  const caption = `${count(keys.length, 'key', 'keys')}, the oldest first`
  return `${list}\n${table(id, caption, ['Key ID', 'Type', 'Algorithm', 'Use', 'First seen here'], rows)}`
}

export function upstreamsHtml({ upstreams, at, processes }: Overview): string {
  const rows = upstreams.map((upstream) => {
    const { name, url, connection, requests, serverErrors, failures, waiting, lastFailure } = upstream
    return cells(
      `<strong>${escape(name)}</strong>`,
      `<code>${breakable(escape(url))}</code>`,
      typeof connection === 'number'
        ? `yes, in ${connection.toFixed(1)} ms`
        : `<strong>no: ${escape(connection)}</strong>`,
      String(requests),
      String(serverErrors),
      String(failures),
      String(waiting),
      lastFailure === undefined
        ? 'none'
        : `${time(lastFailure.at)}, ${age(lastFailure.at, at)}<br>${breakable(escape(lastFailure.code))}<br>request ${identifier('request ID', lastFailure.request)}`,
    )
  })
  const numbers = ['~#Requests', '~#5xx', '~#No response', '~#Waiting']
  const heads = ['Upstream', '~Address', 'Reachable', ...numbers, '~Last failure']
  return table('upstreams', `Counted since ${time(processes.countingSince)}`, heads, rows)
}

/** The targets of upstreams that have several, or one that is not up. */
export function targetsHtml({ upstreams, processes }: Overview): string {
  const rows = upstreams.flatMap(({ name, targets }) =>
    targets.length < 2 && targets.every(({ states }) => states.every(([state]) => state === 'up'))
      ? []
      : targets.map((target) =>
          cells(
            `<strong>${escape(name)}</strong>`,
            `<code>${breakable(escape(target.name))}</code>${target.backup ? ' (backup)' : ''}`,
            target.states.map((state) => stateHtml(state, processes.responding)).join('<br>'),
            String(target.open),
            target.reasons.length === 0 ? 'none' : target.reasons.map(escape).join('<br>'),
          ),
        ),
  )
  if (rows.length === 0) return ''
  return table('targets', 'Where requests go', ['Upstream', 'Target', 'State', '#Open', 'Last failure'], rows)
}

function stateHtml([state, some]: readonly [string, number], processes: number): string {
  const text = some === processes ? state : `${state} in ${some} of ${processes} processes`
  return state === 'up' ? text : `<strong>${escape(text)}</strong>`
}

export function cachesHtml(overview: Overview): string {
  const [used, evicted] = [valuesOf(overview, 'used'), valuesOf(overview, 'evicted')]
  const rows = [...valuesOf(overview, 'entries')].map(([name, entries]) => {
    const percent = Math.round(100 * (used.get(name) ?? 0))
    return cells(`<code>${escape(name)}</code>`, String(entries), `${percent} %`, String(evicted.get(name) ?? 0))
  })
  return table('caches', 'Dropped: counted since the start', ['Cache', '#Entries', '#Used', '#Dropped'], rows)
}

/** Not how often each has run: the page would have to be sent again every two seconds. */
export function workHtml(overview: Overview): string {
  const running = valuesOf(overview, 'running')
  const rows = [...valuesOf(overview, 'runs').keys()].map((name) => {
    const seconds = Math.floor(running.get(name) ?? 0)
    return cells(`<code>${escape(name)}</code>`, seconds === 0 ? 'no' : `for ${seconds} s`)
  })
  return table('work', 'Runs that take a second or more', ['Work', 'Under way'], rows)
}

/** The values of a metric by its label. */
function valuesOf({ inner }: Overview, metric: keyof typeof innerMetrics): ReadonlyMap<string, number> {
  const family = inner.find(({ name }) => name === innerMetrics[metric])
  return new Map(family?.cells.map(({ labels: [label = ''], values: [value = 0] }) => [label, value]))
}

function cells(...html: readonly string[]): Row {
  return { cells: html }
}
