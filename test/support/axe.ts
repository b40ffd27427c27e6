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
  // The debugger runs the script because no Content Security Policy applies to it.
  await page.evaluate(`if (window.axe === undefined) { ${source} }`)
  const options = rules === undefined ? '' : JSON.stringify({ runOnly: { type: 'rule', values: rules } })
  const { violations, incomplete } = (await page.evaluate(`window.axe.run(${options})`)) as Record<string, Found[]>
  return [...(violations ?? []), ...(incomplete ?? [])].flatMap(({ id, nodes }) =>
    nodes.map(({ target }) => `${id}: ${target.join(' ')}`),
  )
}

interface Found {
  readonly id: string
  readonly nodes: readonly { readonly target: readonly string[] }[]
}
