// The sections of CHANGELOG.md, and the release notes that are made from one.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../prepare.mjs'

/**
 * @returns the sections in the order of the file: `title` ("Unreleased" or a version) and `text`
 */
export function readChangelog() {
  const [, ...parts] = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m)
  return parts.map((part) => {
    const [heading = '', ...lines] = part.split('\n')
    return { title: heading.split(' ')[0], text: lines.join('\n').trim() }
  })
}

/** The section of a version, with links that work outside of the repository. */
export function releaseNotes({ tag, url, version }) {
  const { text } = readChangelog().find(({ title }) => title === version)
  const linked = text.replaceAll(/\]\((?!https?:|#)([^)]+)\)/g, `](${url}/blob/${tag}/$1)`)
  return `${linked}\n\n[How to verify the files of this release](${url}/blob/${tag}/SECURITY.md#how-to-verify-a-release)\n`
}
