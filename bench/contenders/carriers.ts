import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { folderFor } from '../bed.ts'
import { startProgram, untilListening } from '../process.ts'
import type { Contender } from './contender.ts'

const program = fileURLToPath(new URL('carrier.ts', import.meta.url))

/** A proxy package without sign-in. */
export function carrier(packageName: '@fastify/http-proxy' | 'http-proxy'): Contender {
  const name = packageName.replace('@', '').replace('/', '-')
  return {
    name,
    title: `${packageName}, no sign-in`,
    signsIn: false,
    can: new Set(),
    missing: () => undefined,
    start: async (bed, { port, cpus, node, nodeOptions }) => {
      const running = startProgram({
        command: node,
        args: [...nodeOptions, '--import', 'tsx', program, packageName, `http://${bed.upstream}`, String(port)],
        cpus,
        logFile: join(folderFor(bed, `${name}-${port}`), 'output.log'),
      })
      await untilListening(port)
      return running
    },
  }
}
