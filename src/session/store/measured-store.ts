import { ownMember } from '../../core/json.ts'
import type { Distribution, Metrics } from '../../observe/metrics.ts'
import type { SessionStore } from './store.ts'

/** The bounds of the histogram, in seconds. */
const durationBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

/** Wraps a store to measure how long its methods take, and to count their errors. */
export function measuredStore(store: SessionStore, metrics: Metrics): SessionStore {
  const durations = metrics.histogram({
    name: 'gatehouse_store_duration_seconds',
    help: 'How long the operations of the session store took.',
    labels: ['operation'],
    bounds: durationBounds,
  })
  const errors = metrics.counter({
    name: 'gatehouse_store_errors_total',
    help: 'Operations of the session store that failed.',
    labels: ['operation'],
  })
  let isAvailable = true
  metrics.gauge({
    name: 'gatehouse_store_available',
    help: 'Whether the last operation of the session store succeeded: 1 or 0.',
    merge: 'min',
    read: () => (isAvailable ? 1 : 0),
  })

  const run = async <T>(operation: string, duration: Distribution, result: Promise<T>): Promise<T> => {
    const startedAt = performance.now()
    try {
      const value = await result
      isAvailable = true
      duration.observe((performance.now() - startedAt) / 1000)
      return value
    } catch (error) {
      isAvailable = false
      errors.of(operation).add()
      throw error
    }
  }
  const measure: Measure = (operation) => {
    const duration = durations.of(operation)
    return (result) => run(operation, duration, result)
  }
  return {
    ...measured(measure, store, [...ofSessions, ...ofFlags, ...ofOthers]),
    jobs: measured(measure, store.jobs, ofJobs, (name) => ownMember(jobOperations, name) ?? `${name}_job`),
    kept: measured(measure, store.kept, ofKept, (name) => `kept_${inSnakeCase(name)}`),
    list: () => store.list(),
    listSid: (tag) => store.listSid(tag),
    listSub: (tag) => store.listSub(tag),
    onNotice: (...args) => store.onNotice(...args),
    receivesNotices: store.receivesNotices?.bind(store),
    staleForMs: () => store.staleForMs(),
    renewCredentials: (config) => store.renewCredentials?.(config),
    close: () => store.close(),
  }
}

/** Measures the results of an operation. */
type Measure = (operation: string) => <T>(result: Promise<T>) => Promise<T>

function measured<T extends object, K extends keyof T & string>(
  measure: Measure,
  object: T,
  names: readonly K[],
  operationOf: (name: K) => string = inSnakeCase,
): Pick<T, K> {
  const methods = names.map((name) => {
    const measureOne = measure(operationOf(name))
    const method = object[name] as (...args: unknown[]) => Promise<unknown>
    return [name, (...args: unknown[]) => measureOne(method.apply(object, args))] as const
  })
  return Object.fromEntries(methods) as Pick<T, K>
}

const ofSessions = ['create', 'read', 'replace', 'touch', 'expiresIn', 'endOne', 'endSid', 'endSub'] as const
const ofFlags = ['takeOnce', 'isMarked', 'acquireLease', 'renewLease', 'releaseLease'] as const
const ofOthers = ['readDocument', 'writeDocument', 'time', 'ping'] as const
const ofJobs = ['watch', 'take', 'open', 'lookAgain', 'postpone', 'remove'] as const
const ofKept = ['begin', 'append', 'complete', 'read', 'take', 'giveBack', 'finish', 'drop'] as const
const jobOperations: Readonly<Record<string, string>> = { take: 'take_jobs', lookAgain: 'look_again' }

/** The name of a method as metrics spell it. */
function inSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
