// The targets of Gatehouse, and whether they are met.
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
  /** `undefined`: not measured in this run. */
  readonly measured: Measurement
  /** The same with the header fields of real traffic. It is shown, and decides nothing. */
  readonly typical?: Measurement
}

const ours = 'gatehouse-redis'
const oauth2Proxy = 'oauth2-proxy-redis'

const targets: readonly Target[] = [
  perCpuSecond(8, 'oauth2-proxy with Redis', oauth2Proxy),
  perCpuSecond(12, 'mod_auth_openidc with Redis', 'mod-auth-openidc-redis'),
  perCpuSecond(5, 'mod_auth_openidc with shared memory', 'mod-auth-openidc-shm'),
  perCpuSecond(2.5, 'Caddy', 'caddy'),
  perCpuSecond(0.5, 'nginx', 'nginx'),
  atMost(2, 'p99 at half load, times nginx', ratio(`p99 ${ours}`, 'p99 nginx')),
  timesOauth2Proxy('a download of 1 MiB', 'cpu download'),
  timesOauth2Proxy('an upload of 1 MiB', 'cpu upload'),
  timesOauth2Proxy('a WebSocket message', 'cpu message'),
  atMost(2, 'CPU of a miss, times a hit', ratio(`cpu miss ${ours}`, `cpu hit ${ours}`)),
  timesOauth2Proxy('a cold sign-in', 'sign-in cold'),
  timesOauth2Proxy('a warm sign-in', 'sign-in warm'),
  { ...atMost(300, 'CPU from start to ready, ms', (facts) => facts.get(`start ${ours}`)), digits: 0 },
  {
    ...atMost(90, 'memory of a worker under load, MB', mebibytes(`memory ${ours}`)),
    digits: 0,
    typical: mebibytes(`memory typical ${ours}`),
  },
  {
    what: 'requests of two workers, times one',
    limit: 1.8,
    more: true,
    digits: 2,
    measured: (facts) => facts.get(`workers ${ours}`),
  },
]

/** How many requests of Gatehouse cost as much as one request of the other contender. */
function perCpuSecond(limit: number, title: string, name: string): Target {
  return {
    what: `requests per CPU second, times ${title}`,
    limit,
    more: true,
    digits: 2,
    measured: ratio(`cpu ${name}`, `cpu ${ours}`),
    typical: ratio(`cpu typical ${name}`, `cpu typical ${ours}`),
  }
}

function timesOauth2Proxy(what: string, fact: string): Target {
  return atMost(
    1.2,
    `CPU of ${what}, times oauth2-proxy with Redis`,
    ratio(`${fact} ${ours}`, `${fact} ${oauth2Proxy}`),
  )
}

function atMost(limit: number, what: string, measured: Measurement): Target {
  return { what, limit, more: false, digits: 2, measured }
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

/** A table of all targets with the measured figures, and whether they are met. */
export function targetsTable(facts: Facts): string {
  const rows = targets.map((target) => {
    const { what, limit, more, digits, measured, typical } = target
    const [figure, shown] = [measured(facts), typical?.(facts)]
    const verdict = figure === undefined ? 'not measured' : verdictOn(target, figure)
    const text = (each: Figure | undefined) => each?.value.toFixed(digits) ?? '—'
    const also = shown === undefined ? '—' : `${text(shown)}${disturbance(shown)}`
    return [what, `at ${more ? 'least' : 'most'} ${limit}`, text(figure), verdict, also]
  })
  return table(['', 'target', 'measured', 'result', 'with the fields of real traffic'], rows)
}

function verdictOn({ limit, more }: Target, figure: Figure): string {
  if (figure.isCalculated) return `calculated, does not count${disturbance(figure)}`
  const isMet = more ? figure.value >= limit : figure.value <= limit
  return `${isMet ? 'met' : 'MISSED'}${disturbance(figure)}`
}

function disturbance({ quiet, rounds }: Figure): string {
  return quiet === rounds ? '' : `, ${quiet} of ${rounds} rounds quiet`
}
