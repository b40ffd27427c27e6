// The targets of Gatehouse, and whether they are met.
import { table } from './report.ts'

/** The results by name. A name ends with the contender. */
export type Facts = Map<string, number>

interface Target {
  readonly what: string
  readonly target: number
  readonly aim: number
  /** Whether a higher value is better. */
  readonly more: boolean
  readonly digits: number
  /** `undefined`: not measured in this run. */
  readonly measured: (facts: Facts) => number | undefined
}

const ours = 'cpu gatehouse-redis'

/** How many requests of Gatehouse cost as much as one request of the other contender. */
const times = (theirs: string) => (facts: Facts) => ratio(facts.get(theirs), facts.get(ours))

/**
 * The processor time of oauth2-proxy 7.15.3 divided by that of Caddy, from one run of both with
 * these settings.
 */
const oauth2ProxyInCaddys = { request: 238.3 / 69.8, mebibyte: 1250 / 630 }

/**
 * The processor time of nginx for a request of the hot path on the machine on which the targets
 * were set: 13 to 14 µs.
 */
const nginxRequestMicros = 13.5

const targets: readonly Target[] = [
  ...oauth2ProxyTargets(),
  {
    what: 'requests per CPU second, times mod_auth_openidc with Redis',
    target: 6,
    aim: 12,
    more: true,
    digits: 2,
    measured: times('cpu mod-auth-openidc-redis'),
  },
  {
    what: 'requests per CPU second, times Caddy plain',
    target: 1.3,
    aim: 2.6,
    more: true,
    digits: 2,
    measured: times('cpu caddy'),
  },
  {
    what: 'requests per CPU second, times nginx plain',
    target: 0.2,
    aim: 0.4,
    more: true,
    digits: 2,
    measured: times('cpu nginx'),
  },
  {
    what: 'p99 at the same rate, times nginx plain',
    target: 5,
    aim: 2,
    more: false,
    digits: 2,
    measured: (facts) => ratio(facts.get('p99 gatehouse-redis'), facts.get('p99 nginx')),
  },
  {
    what: 'a sign-in, ms of CPU',
    target: 2,
    aim: 1,
    more: false,
    digits: 2,
    measured: (facts) => facts.get('sign-in gatehouse-redis'),
  },
  {
    what: `the same where nginx takes ${nginxRequestMicros} µs for a request (reckoned)`,
    target: 2,
    aim: 1,
    more: false,
    digits: 1,
    measured: (facts) => ratio(facts.get('sign-in in requests of nginx gatehouse-redis'), 1000 / nginxRequestMicros),
  },
  {
    what: 'two workers, times one',
    target: 1.6,
    aim: 1.8,
    more: true,
    digits: 2,
    measured: (facts) => facts.get('workers gatehouse-redis'),
  },
  {
    what: 'resident memory of a worker, MB',
    target: 130,
    aim: 90,
    more: false,
    digits: 0,
    measured: (facts) => ratio(facts.get('memory gatehouse-redis'), 2 ** 20),
  },
  {
    what: 'from start to the first answer, ms',
    target: 700,
    aim: 300,
    more: false,
    digits: 0,
    measured: (facts) => facts.get('start gatehouse-redis'),
  },
  {
    what: 'growth of memory under an hour’s requests, %',
    target: 5,
    aim: 2,
    more: false,
    digits: 1,
    measured: (facts) => ratio(facts.get('memory growth'), 0.01),
  },
]

/**
 * Without oauth2-proxy, its processor time is estimated from that of Caddy, and the row says so.
 */
function oauth2ProxyTargets(): readonly Target[] {
  const large = 'cpu 1 MiB gatehouse-redis'
  const perSecond = {
    what: 'requests per CPU second, times oauth2-proxy with Redis',
    target: 4,
    aim: 8,
    more: true,
    digits: 2,
  }
  const mebibyte = { what: 'CPU of a body of 1 MiB, times oauth2-proxy', target: 1.7, aim: 1, more: false, digits: 2 }
  const reckoned = (facts: Facts) => !facts.has('cpu oauth2-proxy')
  const caddys = (fact: string, factor: number) => (facts: Facts) => {
    const caddy = facts.get(fact)
    return caddy === undefined || !reckoned(facts) ? undefined : caddy * factor
  }
  const byCaddy = caddys('cpu caddy', oauth2ProxyInCaddys.request)
  const largeByCaddy = caddys('cpu 1 MiB caddy', oauth2ProxyInCaddys.mebibyte)
  return [
    { ...perSecond, measured: times('cpu oauth2-proxy') },
    {
      ...perSecond,
      what: `${perSecond.what} (not here: reckoned from Caddy)`,
      measured: (facts) => ratio(byCaddy(facts), facts.get(ours)),
    },
    { ...mebibyte, measured: (facts) => ratio(facts.get(large), facts.get('cpu 1 MiB oauth2-proxy')) },
    {
      ...mebibyte,
      what: `${mebibyte.what} (not here: reckoned from Caddy)`,
      measured: (facts) => ratio(facts.get(large), largeByCaddy(facts)),
    },
  ]
}

function ratio(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a / b
}

/**
 * A table of results, targets and aims, and whether they are met. Targets without a result have no
 * row.
 */
export function targetsTable(facts: Facts): string | undefined {
  const rows = targets.flatMap(({ what, target, aim, more, digits, measured }) => {
    const value = measured(facts)
    if (value === undefined) return []
    const meets = (limit: number) => (more ? value >= limit : value <= limit)
    const verdict = meets(aim) ? 'aim reached' : meets(target) ? 'target reached' : 'NOT reached'
    const limit = (number: number) => `${more ? 'at least' : 'at most'} ${number}`
    return [[what, value.toFixed(digits), limit(target), limit(aim), verdict]]
  })
  return rows.length === 0 ? undefined : table(['', 'measured', 'target', 'aim', ''], rows)
}
