import { reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'

/** Runs the steps in order. A step that fails is logged, and the next one runs. */
export async function runInOrder(steps: readonly (() => Promise<unknown>)[], log: Log): Promise<void> {
  for (const step of steps)
    await step().catch((error: unknown) => log.warn('shutdown.step_failed', { reason: reason(error) }))
}
