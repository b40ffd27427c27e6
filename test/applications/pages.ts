import assert from 'node:assert/strict'
import { blocksOf, pages, type Block } from '../docs/markdown.ts'
import { kindOf } from '../docs/snippets.ts'

/**
 * A code block of a page in docs/applications.
 * @param start how its text begins, where the page has several blocks of the language
 */
export function blockOf(page: string, language: string, start = ''): string {
  const found = blocksAt(page).find((each) => each.language === language && each.text.includes(start))
  return found?.text ?? assert.fail(`docs/applications/${page}.md has no block of ${language} with "${start}"`)
}

/** The settings of the upstream, as the page has them. */
export function upstreamSettings(page: string): string {
  const found = blocksAt(page).find((block) => block.language === 'yaml' && kindOf(block) === 'upstream')
  return found?.text ?? assert.fail(`docs/applications/${page}.md has no settings of an upstream`)
}

function blocksAt(page: string): Block[] {
  return pages.filter(({ path }) => path === `docs/applications/${page}.md`).flatMap(blocksOf)
}
