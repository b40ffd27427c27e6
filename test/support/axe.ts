import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Frame, Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** The rules whose result depends on colors. */
export const colorRules = ['color-contrast', 'link-in-text-block']

/**
 * Returns the violations that axe-core finds on a page, and the checks that it cannot decide, as
 * `rule: element`. Absent `rules`: all that axe-core runs by default.
 */
export async function accessibilityFaults(page: Page | Frame, rules?: readonly string[]): Promise<readonly string[]> {
  const options = rules === undefined ? '' : JSON.stringify({ runOnly: { type: 'rule', values: rules } })
  const { violations, incomplete } = await runAxe(page, options)
  return named([...violations, ...incomplete])
}

/** Returns the violations that axe-core calls serious or critical, as `rule: element`. */
export async function seriousViolations(page: Page): Promise<readonly string[]> {
  const { violations } = await runAxe(page, '')
  return named(violations.filter(({ impact }) => impact === 'serious' || impact === 'critical'))
}

async function runAxe(page: Page | Frame, options: string): Promise<Record<'violations' | 'incomplete', Found[]>> {
  // The debugger runs the script because no Content Security Policy applies to it.
  await page.evaluate(`if (window.axe === undefined) { ${source} }`)
  return page.evaluate(`window.axe.run(${options})`)
}

function named(found: readonly Found[]): string[] {
  return found.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
}

interface Found {
  readonly id: string
  readonly impact: string | null
  readonly nodes: readonly { readonly target: readonly string[] }[]
}
