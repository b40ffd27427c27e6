// How Node.js runs a contender: as in the image of Gatehouse.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bed } from '../bed.ts'

const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')
const [, entrypoint = '[]'] = /^ENTRYPOINT (.*)$/m.exec(dockerfile) ?? []
/** The settings of glibc. */
const memory = [...dockerfile.matchAll(/^ENV (MALLOC_\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value])

/** The options of Node.js. */
export const nodeFlags: readonly string[] = (JSON.parse(entrypoint) as string[]).filter((arg) => arg.startsWith('--'))

/** The environment. The compile cache is filled by the first start (from Node.js 22.1). */
export function nodeEnvironment(bed: Pick<Bed, 'folder'>): Readonly<Record<string, string>> {
  return { ...Object.fromEntries(memory), NODE_COMPILE_CACHE: join(bed.folder, 'compile-cache') }
}

/** The same for a report. */
export const nodeRunsWith = [nodeFlags.join(' '), ...memory.map((pair) => pair.join('=')), 'NODE_COMPILE_CACHE']
  .map((part) => `\`${part}\``)
  .join(', ')
