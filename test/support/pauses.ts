import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { pauses } from '../../src/core/pauses.ts'
import { bundledModules } from './bundle.ts'
import { gatehouse } from './command.ts'

/** Other values of the pauses of src/core/pauses.ts, in ms. */
export type OtherPauses = Partial<Record<keyof typeof pauses, number>>

const usual = { ...pauses }

/** Replaces pauses for the gateways of this process, until the test ends. */
export function replacePauses(t: Pick<TestContext, 'after'>, others: OtherPauses): void {
  setPauses(others)
  t.after(restorePauses)
}

/** Replaces pauses until {@link restorePauses}, for tests that run at the same time. */
export function setPauses(others: OtherPauses): void {
  Object.assign(pauses, others)
}

export function restorePauses(): void {
  Object.assign(pauses, usual)
}

/** The pauses in the built program, as esbuild writes them. */
export const builtPauses = /(?<=\n\/\/ src\/core\/pauses\.ts\n(?:.*\n)?var pauses = \{)[^}]*(?=\})/

/** The built program with other pauses, for a gateway in a separate process and for its workers. */
export function gatehouseWith(others: OtherPauses): readonly [string, ...string[]] {
  assert.equal(bundledModules().filter(({ text }) => builtPauses.test(text)).length, 1)
  const [node, main] = gatehouse
  if (Object.keys(others).length === 0) return gatehouse
  const preload = `
    import { registerHooks } from 'node:module'
    const load = (url, context, next) => {
      const loaded = next(url, context)
      if (!url.includes('/dist/')) return loaded
      const source = String(loaded.source).replace(${String(builtPauses)}, (text) => text + ${JSON.stringify(`, ...${JSON.stringify(others)}`)})
      return { ...loaded, source }
    }
    registerHooks({ load })`
  return [node, '--import', `data:text/javascript,${encodeURIComponent(preload)}`, main]
}
