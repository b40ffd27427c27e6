import { errorRow, isErrorCode } from '../core/error-codes.ts'
import type { CutReason } from '../proxy/live-streams.ts'

/** What a code means to an operator, and what to do. */
export interface Advice {
  readonly means: string
  readonly todo: string
}

/** For each reason why the gateway breaks off what is under way. */
const adviceOnCut: Readonly<Record<CutReason, Advice>> = {
  session_ended: {
    means: 'the session ended while the answer, upload or WebSocket was under way',
    todo: 'nothing: that is what an ending is for',
  },
  going_away: { means: 'the gateway was stopped', todo: 'nothing: clients connect again' },
}

/**
 * What is known of a code that stands in a log: an error, or the reason why a stream was closed.
 */
export function adviceOn(code: string): Advice | undefined {
  if (isErrorCode(code)) {
    const { means, todo } = errorRow(code)
    return { means, todo }
  }
  return Object.hasOwn(adviceOnCut, code) ? adviceOnCut[code as CutReason] : undefined
}
