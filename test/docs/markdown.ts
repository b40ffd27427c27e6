import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folders = ['docs', 'src', 'packages', 'test', 'bench', 'examples', 'charts', 'deploy']

/** A page of the documentation. */
export interface Page {
  /** From the root of the project, with `/`. */
  readonly path: string
  readonly text: string
}

/** A fenced block: ```` ```yaml helm ````. */
export interface Block {
  readonly page: string
  /** The number of its first line in the page, from 1. */
  readonly line: number
  /** The info string: the language, and sometimes one more word. */
  readonly language: string
  readonly word: string
  readonly text: string
}

/** Every Markdown file of the project. */
export const pages: readonly Page[] = [...namesIn('.', false), ...folders.flatMap((folder) => namesIn(folder, true))]
  .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
  .sort()
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))

function namesIn(folder: string, recursive: boolean): string[] {
  try {
    const names = readdirSync(join(root, folder), { recursive, encoding: 'utf8' })
    return names.map((name) => relative(root, join(root, folder, name)).replaceAll(sep, '/'))
  } catch {
    return []
  }
}

/** CommonMark §4.5, for fences of backticks; what is inside of a list is moved to the left. */
export function blocksOf({ path, text }: Page): Block[] {
  return [...text.matchAll(/^( *)(```+)([\w-]*)[ ]*([^\n`]*)\n([^]*?)^ *\2 *$/gm)].map((match) => {
    const [, indent = '', , language = '', word = '', content = ''] = match
    const line = text.slice(0, match.index).split('\n').length + 1
    return {
      page: path,
      line,
      language,
      word: word.trim(),
      text: content.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }
  })
}

/** The text without fenced blocks. The line numbers stay the same. */
export function proseOf({ text }: Page): string {
  return text.replaceAll(/^( *)(```+)[^\n]*\n[^]*?^ *\2 *$/gm, (block) => block.replaceAll(/[^\n]/g, ''))
}

/** The texts between single backticks. */
export function codeSpansOf(page: Page): string[] {
  return [...proseOf(page).matchAll(/(?<!`)`([^`\n]+)`(?!`)/g)].map(([, span = '']) => span)
}

/** The targets of links and images, as written. */
export function linksOf(page: Page): string[] {
  const text = proseOf(page).replaceAll(/(`+)(?:(?!\1)[^])*\1/g, '')
  const inline = [...text.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)].map(([, target = '']) => target)
  const defined = [...text.matchAll(/^\[[^\]]+\]:\s*(\S+)/gm)].map(([, target = '']) => target)
  return [...inline, ...defined]
}

/** The anchors that GitHub gives to the headings of a page. */
export function anchorsOf(page: Page): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of proseOf(page).matchAll(/^#{1,6} +(.*?) *#* *$/gm)) {
    const slug = heading
      .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
      .replaceAll(' ', '-')
    let anchor = slug
    for (let more = 1; anchors.has(anchor); more += 1) anchor = `${slug}-${more}`
    anchors.add(anchor)
  }
  for (const [, id = ''] of page.text.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id)
  return anchors
}
