// How Node.js runs a contender: as in the image of Gatehouse.
import { join } from 'node:path'
import { imageFlags, imageVariables } from '../../test/support/image.ts'
import type { Bed } from '../bed.ts'

/** The environment. The compile cache is filled by the first start (from Node.js 22.1). */
export function nodeEnvironment(bed: Pick<Bed, 'folder'>): Readonly<Record<string, string>> {
  return { ...imageVariables, NODE_COMPILE_CACHE: join(bed.folder, 'compile-cache') }
}

/** The same for a report. */
export const nodeRunsWith = [
  imageFlags.join(' '),
  ...Object.entries(imageVariables).map((pair) => pair.join('=')),
  'NODE_COMPILE_CACHE',
]
  .map((part) => `\`${part}\``)
  .join(', ')
