import { CallFault, formatOption, isJson, jsonText, reader, readOptions, takeNone } from './command.ts'
import { count, demandOf, figures, sizeOf, type Demand, type Size } from './sizing.ts'

const number = { type: 'string' } as const
const options = { people: number, requests: number, 'sign-ins': number, logouts: number, streams: number }

/** The largest number that an option may have: more than there are people. */
const largest = 1e10

/** Reads the arguments of `gatehouse size`. */
export const readSizeCall = reader((argv) => {
  const { values, positionals } = readOptions(argv, { ...options, ...formatOption })
  takeNone(positionals)
  const print = isJson(values.format) ? sizeJson : sizeText
  const given: Partial<Record<keyof Demand, number>> = {}
  for (const [option, text] of Object.entries(values)) {
    if (option === 'format') continue
    const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : NaN
    if (!(value <= largest))
      throw new CallFault(`--${option} must be a number from 0 to ${count(largest)}, not "${text}"`)
    given[option === 'sign-ins' ? 'signIns' : (option as keyof Demand)] = value
  }
  const { people } = given
  if (people === undefined) throw new CallFault('--people is missing: how many people are signed in at the same time?')
  if (!Number.isInteger(people)) throw new CallFault(`--people must be a whole number, not "${people}"`)
  return async ({ out }) => (out(print(demandOf({ ...given, people }), Object.keys(given))), 0)
})

function sizeJson(demand: Demand): string {
  const { people, requests, signIns, logouts, streams } = demand
  const { cpus, workers, replicas, workerBytes, missShare, redis, extrapolated } = sizeOf(demand)
  return jsonText({
    demand: { people, requests, sign_ins: signIns, logouts, streams },
    gateway: { cpus, replicas, workers, worker_bytes: Math.ceil(workerBytes), miss_share: missShare },
    redis: {
      bytes: Math.ceil(redis.bytes),
      cpus: redis.cpus,
      commands_per_second: redis.commands,
      network_bytes_per_second: Math.ceil(redis.networkBytes),
    },
    extrapolated,
    figures,
  })
}

/** What a default means. */
const defaults: Readonly<Record<string, string>> = {
  requests: '20 of each person in a minute',
  signIns: 'all people within half an hour',
  logouts: 'one for each person within an hour',
  streams: 'none',
}

function sizeText(demand: Demand, given: readonly string[]): string {
  const note = (name: string) => (given.includes(name) ? '' : `   (default: ${defaults[name]})`)
  const { cpus, workers, replicas, workerBytes, missShare, redis, extrapolated } = sizeOf(demand)
  const days = Object.values(figures)
    .map(({ measured }) => measured)
    .sort()
  return `${count(demand.people)} people are signed in at the same time. In a second of the busiest time:
  requests        ${count(demand.requests)}${note('requests')}
  sign-ins        ${count(demand.signIns)}${note('signIns')}
  Logout Tokens   ${count(demand.logouts)}${note('logouts')}
  open streams    ${count(demand.streams)}${note('streams')}

Gateway
  processors      ${count(cpus)} in use, in all replicas together
  replicas        ${replicas}, each with workers: ${workers}
                  half of each processor stays free, and one replica may be lost
  memory          ${bytes(workerBytes)} for each worker; give each at least ${bytes(Math.max(512 * 2 ** 20, 2 * workerBytes))}
  misses          at most ${count(missShare * 100)} % of the requests read their session from Redis

Redis
  memory          ${bytes(redis.bytes)}
  processor       ${count(redis.cpus)}
  commands        ${count(redis.commands)} in a second
  network         ${bytes(redis.networkBytes)} in a second

Measured from ${days[0]} to ${days.at(-1)}, on machines with two processors: docs/sizing.md.
${extrapolationText(extrapolated)}`
}

function extrapolationText(reasons: Size['extrapolated']): string {
  if (reasons.length === 0) return 'Nothing is extrapolated beyond what was measured.\n'
  return `Extrapolated, so measure it before you rely on it:\n${reasons.map((reason) => `  - ${reason}\n`).join('')}`
}

function bytes(value: number): string {
  const step = Math.min(4, Math.floor(Math.log2(Math.max(value, 1)) / 10))
  return `${count(value / 1024 ** step)} ${['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][step]}`
}
