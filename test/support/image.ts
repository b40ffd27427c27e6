// How the image runs Node.js, as the Dockerfile says.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './command.ts'

const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8')
const entrypoint = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)?.[1]
if (entrypoint === undefined) throw new Error('The Dockerfile has no ENTRYPOINT in JSON form.')

/** The options of Node.js. */
export const imageFlags: readonly string[] = (JSON.parse(entrypoint) as string[]).filter((arg) => arg.startsWith('--'))

/** The settings of glibc. */
export const imageVariables: Readonly<Record<string, string>> = Object.fromEntries(
  [...dockerfile.matchAll(/^ENV (MALLOC_\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
)
