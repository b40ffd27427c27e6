import { spawn } from 'node:child_process'
import { OperatorError, reason } from '../core/errors.ts'
import { Repeating } from '../core/repeating.ts'
import type { Log } from '../observe/log.ts'
import { isWorker } from '../workers/primary.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The descriptor of the first socket that systemd passes (sd_listen_fds(3)). */
const firstDescriptor = 3
/** The same in a worker, where 3 is the channel to the primary. */
const descriptorInWorker = 4

/**
 * The listening socket that systemd has opened for `listen`; `undefined` when it has opened none. A
 * socket of systemd stays open over a restart, so connections wait in it and none is refused.
 * @throws {OperatorError} when there are several
 */
export function socketOfSystemd({ LISTEN_PID, LISTEN_FDS }: Environment): number | undefined {
  // The variables are for one process and its workers, not for other processes that it starts.
  if (Number(LISTEN_PID) !== (isWorker() ? process.ppid : process.pid)) return undefined
  if (LISTEN_FDS !== '1')
    throw new OperatorError(
      `systemd passes ${LISTEN_FDS ?? 'no'} sockets, but the gateway takes one, for listen: keep one ListenStream in the socket unit`,
    )
  return isWorker() ? descriptorInWorker : firstDescriptor
}

/** The messages of the gateway to systemd (sd_notify(3)). */
export interface Supervision {
  /** Says that the gateway serves, and from now on regularly that the process is alive. */
  ready(): void
  stopping(): void
}

/** Tells systemd about the process, if the unit has `Type=notify`; otherwise it does nothing. */
export function superviseBySystemd(env: Environment, log: Log): Supervision {
  if (env['NOTIFY_SOCKET'] === undefined || isWorker()) return { ready() {}, stopping() {} }
  let hasFailed = false
  // Node.js has no datagram sockets of AF_UNIX, so a program of systemd sends the messages.
  const notify = (...states: string[]): Promise<void> =>
    new Promise((resolve) => {
      const failed = (why: string) => {
        if (!hasFailed) log.warn('systemd.not_notified', { reason: why, hint: notifyHint })
        hasFailed = true
        resolve()
      }
      const sent = spawn('systemd-notify', states, { stdio: 'ignore', env: { ...env, LISTEN_PID: undefined } })
      sent.on('error', (error) => failed(reason(error)))
      sent.on('exit', (code) => (code === 0 ? resolve() : failed(`systemd-notify ended with ${code}`)))
    })
  const { WATCHDOG_PID, WATCHDOG_USEC } = env
  // Twice in the time that the unit allows, as sd_watchdog_enabled(3) recommends.
  const pauseMs = Number(WATCHDOG_USEC) / 2000
  const isWatched = pauseMs > 0 && (WATCHDOG_PID === undefined || Number(WATCHDOG_PID) === process.pid)
  const watchdog = new Repeating('systemd_watchdog', async () => {
    await notify('WATCHDOG=1')
    return pauseMs
  })
  return {
    ready: () => {
      void notify('READY=1', `MAINPID=${process.pid}`)
      if (isWatched) watchdog.wakeIn(pauseMs)
    },
    // The watchdog goes on, because a drain may take longer than it allows.
    stopping: () => void notify('STOPPING=1'),
  }
}

const notifyHint = 'Write Type=exec in the unit, or NotifyAccess=all beside Type=notify, and install systemd-notify.'
