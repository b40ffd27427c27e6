// How many lines of code a folder has: lines that are neither blank nor comment.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Counts the lines of the programs and styles below a folder. */
export function codeLines(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((path) => /\.(?:ts|js|css)$/.test(path))
  return files.reduce((sum, path) => sum + codeLinesOf(readFileSync(join(folder, path), 'utf8')), 0)
}

function codeLinesOf(text) {
  let isComment = false
  return text.split('\n').filter((line) => {
    const isInside = isComment || /^\s*\/\*/.test(line)
    isComment = isInside && !line.includes('*/')
    return !isInside && !/^\s*(?:\/\/|$)/.test(line)
  }).length
}
