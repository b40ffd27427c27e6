import type { SessionKey } from '../core/names.ts'
import type { Admission } from '../gate/admission.ts'
import type { Log } from '../observe/log.ts'
import type { Pages } from '../pages/pages.ts'
import type { LiveStreams } from './live-streams.ts'
import type { Upstreams } from './upstream.ts'

export type Pass = Extract<Admission, { kind: 'pass' }>

export interface ProxyParts {
  readonly upstreams: Upstreams
  readonly live: LiveStreams
  readonly log: Log
  readonly pages: Pages
  /** The session cookie, and those of sign-in attempts: no upstream sees or sets them. */
  readonly isGatewayCookie: (name: string) => boolean
  /** How long a client may pause while it sends a body. */
  readonly bodyIdleTimeoutMs: number
  /** How much of it has to arrive, on average over that time; 0: any. */
  readonly bodyBytesPerSecond: number
  /**
   * Bytes of an upload or download have moved, or the person's side of a tunnel has sent something:
   * the session is in use.
   */
  readonly onActivity: (session: SessionKey) => void
}
