import { errorRow, isErrorCode } from '../core/error-codes.ts'
import type { CutReason } from '../proxy/live-streams.ts'

/** What a code means to an operator, and what to do. */
export interface Advice {
  readonly means: string
  readonly todo: string
}

/** For each reason for which the gateway closes a stream or stops an exchange. */
const adviceOnCut: Readonly<Record<CutReason, Advice>> = {
  session_ended: {
    means: 'the session ended during the response, upload or WebSocket',
    todo: 'nothing: an ending closes these on purpose',
  },
  going_away: { means: 'the gateway was stopped', todo: 'nothing: clients reconnect' },
}

/** The advice on a code in the log: an error code, or the reason why a stream was closed. */
export function adviceOn(code: string): Advice | undefined {
  if (isErrorCode(code)) {
    const { means, todo } = errorRow(code)
    return { means, todo }
  }
  return Object.hasOwn(adviceOnCut, code) ? adviceOnCut[code as CutReason] : undefined
}
