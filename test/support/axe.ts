import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Frame, Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe-core finds on a page, and what it cannot decide: `rule: element`, one each. */
export async function accessibilityFaults(page: Page | Frame): Promise<readonly string[]> {
  // By the debugger, which no Content Security Policy holds back.
  await page.evaluate(`if (window.axe === undefined) { ${source} }`)
  const { violations, incomplete } = (await page.evaluate('window.axe.run()')) as Record<string, Found[]>
  return [...(violations ?? []), ...(incomplete ?? [])].flatMap(({ id, nodes }) =>
    nodes.map(({ target }) => `${id}: ${target.join(' ')}`),
  )
}

interface Found {
  readonly id: string
  readonly nodes: readonly { readonly target: readonly string[] }[]
}
