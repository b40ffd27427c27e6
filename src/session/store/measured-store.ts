import type { Distribution, Metrics } from '../../observe/metrics.ts'
import type { KeptStore } from './kept-store.ts'
import type { LogoutJobStore, SessionStore } from './store.ts'

/** The bounds of the histogram, in seconds. */
const durationBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

/** Wraps a store to measure how long its methods take, and to count their errors. */
export function measuredStore(store: SessionStore, metrics: Metrics): SessionStore {
  const durations = metrics.histogram(
    {
      name: 'gatehouse_store_duration_seconds',
      help: 'How long the operations of the session store took.',
      labels: ['operation'],
    },
    durationBounds,
  )
  const errors = metrics.counter({
    name: 'gatehouse_store_errors_total',
    help: 'Operations of the session store that failed.',
    labels: ['operation'],
  })
  let isAvailable = true
  metrics.gauge(
    {
      name: 'gatehouse_store_available',
      help: 'Whether the last operation of the session store succeeded: 1 or 0.',
    },
    'min',
    () => (isAvailable ? 1 : 0),
  )

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
  const timedOf =
    (owner: object) =>
    <A extends unknown[], T>(operation: string, method: (...args: A) => Promise<T>) => {
      const duration = durations.of(operation)
      return (...args: A) => run(operation, duration, method.apply(owner, args))
    }
  const timed = timedOf(store)
  const timedJob = timedOf(store.jobs)
  const jobs: LogoutJobStore = {
    watch: timedJob('watch_job', store.jobs.watch),
    take: timedJob('take_jobs', store.jobs.take),
    open: timedJob('open_job', store.jobs.open),
    lookAgain: timedJob('look_again', store.jobs.lookAgain),
    postpone: timedJob('postpone_job', store.jobs.postpone),
    remove: timedJob('remove_job', store.jobs.remove),
  }
  return {
    jobs,
    kept: measuredKept(store.kept, timedOf(store.kept)),
    create: timed('create', store.create),
    read: timed('read', store.read),
    replace: timed('replace', store.replace),
    touch: timed('touch', store.touch),
    expiresIn: timed('expires_in', store.expiresIn),
    endOne: timed('end_one', store.endOne),
    endSid: timed('end_sid', store.endSid),
    endSub: timed('end_sub', store.endSub),
    takeOnce: timed('take_once', store.takeOnce),
    mark: timed('mark', store.mark),
    isMarked: timed('is_marked', store.isMarked),
    acquireLease: timed('acquire_lease', store.acquireLease),
    renewLease: timed('renew_lease', store.renewLease),
    releaseLease: timed('release_lease', store.releaseLease),
    readDocument: timed('read_document', store.readDocument),
    writeDocument: timed('write_document', store.writeDocument),
    time: timed('time', store.time),
    ping: timed('ping', store.ping),
    list: () => store.list(),
    listSid: (tag) => store.listSid(tag),
    listSub: (tag) => store.listSub(tag),
    onNotice: (listener) => store.onNotice(listener),
    receivesNotices: () => store.receivesNotices(),
    staleForMs: () => store.staleForMs(),
    close: () => store.close(),
  }
}

type Timed = <A extends unknown[], T>(
  operation: string,
  method: (...args: A) => Promise<T>,
) => (...args: A) => Promise<T>

function measuredKept(kept: KeptStore, timed: Timed): KeptStore {
  return {
    begin: timed('kept_begin', kept.begin),
    append: timed('kept_append', kept.append),
    complete: timed('kept_complete', kept.complete),
    read: timed('kept_read', kept.read),
    take: timed('kept_take', kept.take),
    giveBack: timed('kept_give_back', kept.giveBack),
    finish: timed('kept_finish', kept.finish),
    drop: timed('kept_drop', kept.drop),
  }
}
