import { reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'
import type { LiveStreams } from '../proxy/live-streams.ts'
import type { Sessions } from '../session/sessions.ts'

/** How often sessions with open streams are looked up, in ms. */
const everyMs = 5000
const atOnce = 50

/**
 * Streams that are open for a session make no requests, so nobody would see that it has expired: the sessions behind them are
 * looked up from time to time, and what belongs to none is closed. It also finds what a lost notice did not tell.
 */
export function watchLiveSessions(live: LiveStreams, sessions: Pick<Sessions, 'read'>, log: Log): { stop(): void } {
  let stopped = false
  let timer: NodeJS.Timeout | undefined

  const later = () => {
    if (!stopped) timer = setTimeout(() => void look(), everyMs).unref()
  }
  const look = async () => {
    const keys = [...live.sessions()]
    try {
      for (let index = 0; index < keys.length && !stopped; index += atOnce) {
        const some = keys.slice(index, index + atOnce)
        const found = await Promise.all(some.map((key) => sessions.read(key)))
        live.closeAll(some.filter((_key, at) => found[at] === undefined))
      }
    } catch (error) {
      // While the store is away nothing can be said about a session; the next look can.
      log.debug('streams.not_looked_up', { reason: reason(error) })
    }
    later()
  }

  later()
  return {
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}
