// The targets of Gatehouse, and whether they are met. Ratios with other programs are floors: what
// was reached must not be lost.
import { table } from './report.ts'
import type { Figure } from './rounds.ts'

/** The results by name. A name ends with the contender. */
export type Facts = Map<string, Figure>

type Measurement = (facts: Facts) => Figure | undefined

interface Target {
  readonly what: string
  readonly limit: number
  /** Whether a higher value is better. */
  readonly more: boolean
  readonly digits: number
  /** `undefined`: not measured. */
  readonly measured: Measurement
}

const ours = 'gatehouse-redis'
const oauth2Proxy = 'oauth2-proxy-redis'
const modAuthOpenidc = 'mod-auth-openidc-redis'

const targets: readonly Target[] = [
  perCpuSecond(6.5, 'oauth2-proxy with Redis', oauth2Proxy),
  perCpuSecond(12, 'mod_auth_openidc with Redis', modAuthOpenidc),
  perCpuSecond(5, 'mod_auth_openidc with shared memory', 'mod-auth-openidc-shm'),
  perCpuSecond(2.4, 'Caddy', 'caddy'),
  perCpuSecond(0.5, 'nginx', 'nginx'),
  atLeast(0.45, 'requests over TLS per CPU second, times nginx', ratio('cpu tls nginx', `cpu tls ${ours}`)),
  atLeast(
    0.5,
    'full TLS handshakes per CPU second, times nginx',
    ratio('cpu handshakes nginx', `cpu handshakes ${ours}`),
  ),
  atLeast(1.2, 'requests over HTTP/2 per CPU second, times Caddy', ratio('cpu http2 caddy', `cpu http2 ${ours}`)),
  atLeast(0.28, 'requests over HTTP/2 per CPU second, times nginx', ratio('cpu http2 nginx', `cpu http2 ${ours}`)),
  atMost(1.5, 'p99 at half load, times nginx, in the worst of ten rounds', (facts) => facts.get(`p99 worst ${ours}`)),
  timesOauth2Proxy(1.2, 'a download of 1 MiB', 'cpu download'),
  timesOauth2Proxy(1.2, 'an upload of 1 MiB', 'cpu upload'),
  timesOauth2Proxy(1.2, 'a WebSocket message', 'cpu message'),
  atMost(2, 'CPU of a miss, times a hit', ratio(`cpu miss ${ours}`, `cpu hit ${ours}`)),
  timesOauth2Proxy(1.5, 'a cold sign-in', 'sign-in cold'),
  timesOauth2Proxy(1, 'a warm sign-in', 'sign-in warm'),
  ...['few', 'many'].flatMap((sessions) => ['p50', 'p99'].map((part) => logoutToken(part, sessions))),
  { ...atMost(300, 'CPU from start to ready, ms', (facts) => facts.get(`start ${ours}`)), digits: 0 },
  atMost(1.1, 'a page in a browser with an empty cache, p50, times nginx', pageTimesNginx('cold p50')),
  atMost(1.2, 'the same, p95', pageTimesNginx('cold p95')),
  atMost(1.1, 'the page again, p50, times nginx', pageTimesNginx('warm p50')),
  atMost(1.2, 'the same, p95', pageTimesNginx('warm p95')),
  ...['warm', 'cold'].map((kind) =>
    atMost(
      1.1,
      `the first page after a sign-in, ${kind === 'warm' ? '' : 'of a new process, '}times mod_auth_openidc with Redis`,
      ratio(`first page ${kind} p50 ${ours}`, `first page ${kind} p50 ${modAuthOpenidc}`),
    ),
  ),
  inMs(1_500, 'from start to the first page, half a processor, 128 MiB, ms', `start in container ${ours}`),
  inMs(1_000, 'the same without the collection', `start in container without collection ${ours}`),
  inMs(10, 'longest pause at half load in the worst of ten rounds, ms', `pause worst ${ours}`),
  { ...atMost(24, 'memory of its own when it is ready, MB', mebibytes(`own memory ready ${ours}`)), digits: 0 },
  { ...atMost(70, 'memory of a worker that is ready, MB', mebibytes(`memory ready ${ours}`)), digits: 0 },
  { ...atMost(85, 'memory of a worker under load, MB', mebibytes(`memory ${ours}`)), digits: 0 },
  atMost(180, 'wake-ups of an idle sidecar in a minute', (facts) => facts.get(`idle wakes ${ours}`)),
  atMost(30, 'CPU of an idle sidecar in a minute, ms', (facts) => facts.get(`idle cpu ${ours}`)),
  atLeast(1.85, 'requests of two workers, times one', (facts) => facts.get(`workers ${ours}`)),
]

function pageTimesNginx(kind: string): Measurement {
  return ratio(`page ${kind} ${ours}`, `page ${kind} nginx`)
}

function inMs(limit: number, what: string, fact: string): Target {
  return { ...atMost(limit, what, (facts) => facts.get(fact)), digits: 0 }
}

/** How many requests of Gatehouse cost as much as one request of the other contender. */
function perCpuSecond(limit: number, title: string, name: string): Target {
  return atLeast(limit, `requests per CPU second, times ${title}`, ratio(`cpu ${name}`, `cpu ${ours}`))
}

function timesOauth2Proxy(limit: number, what: string, fact: string): Target {
  return atMost(
    limit,
    `CPU of ${what}, times oauth2-proxy with Redis`,
    ratio(`${fact} ${ours}`, `${fact} ${oauth2Proxy}`),
  )
}

function logoutToken(part: string, sessions: string): Target {
  const fact = `logout ${part} of ${sessions}`
  return atMost(
    1,
    `${part} of a Logout Token with ${sessions === 'many' ? 'a million' : '1,000'} sessions, times mod_auth_openidc with Redis`,
    ratio(`${fact} ${ours}`, `${fact} ${modAuthOpenidc}`),
  )
}

function atMost(limit: number, what: string, measured: Measurement): Target {
  return { what, limit, more: false, digits: 2, measured }
}

function atLeast(limit: number, what: string, measured: Measurement): Target {
  return { what, limit, more: true, digits: 2, measured }
}

/** The quietness of a ratio is that of the figure with fewer quiet rounds. */
function ratio(upper: string, lower: string): Measurement {
  return (facts) => {
    const [a, b] = [facts.get(upper), facts.get(lower)]
    if (a === undefined || b === undefined) return undefined
    const worse = a.quiet / a.rounds < b.quiet / b.rounds ? a : b
    return { ...worse, value: a.value / b.value }
  }
}

function mebibytes(fact: string): Measurement {
  return (facts) => {
    const bytes = facts.get(fact)
    return bytes && { ...bytes, value: bytes.value / 2 ** 20 }
  }
}

/**
 * A table of all targets with the figures, and whether they are met. Each ratio is of one scenario,
 * but scenarios may be of different runs.
 */
export function targetsTable(facts: Facts): string {
  const figures = targets.map(({ measured }) => measured(facts))
  const dates = figures.flatMap((figure) => figure?.measured ?? [])
  const usual = dates.find((date) => dates.filter((other) => other === date).length * 2 > dates.length)
  const rows = targets.map((target, row) => {
    const { what, limit, more, digits } = target
    const figure = figures[row]
    const verdict = figure === undefined ? 'not measured' : verdictOn(target, figure)
    const when = figure === undefined || figure.measured === usual ? '' : ` (${figure.measured ?? 'now'})`
    return [what, `at ${more ? 'least' : 'most'} ${limit}`, figure?.value.toFixed(digits) ?? '—', verdict + when]
  })
  const head = usual === undefined ? '' : `${usual}, unless the result names another run:\n\n`
  return head + table(['', 'target', 'measured', 'result'], rows)
}

function verdictOn({ limit, more }: Target, figure: Figure): string {
  if (figure.isCalculated) return `calculated, does not count${disturbance(figure)}`
  if (more ? figure.value >= limit : figure.value <= limit) return `met${disturbance(figure)}`
  // Other programs may have caused it.
  return figure.quiet === figure.rounds ? 'MISSED' : `not judged${disturbance(figure)}`
}

function disturbance({ quiet, rounds }: Figure): string {
  return quiet === rounds ? '' : `, ${quiet} of ${rounds} rounds quiet`
}
