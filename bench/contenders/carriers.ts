import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { imageFlags } from '../../test/support/image.ts'
import { folderFor } from '../bed.ts'
import { startProgram, untilListening } from '../process.ts'
import type { Contender } from './contender.ts'
import { nodeEnvironment, nodeRunsWith } from './node-program.ts'

const program = fileURLToPath(new URL('carrier.mjs', import.meta.url))

/** A proxy package without sign-in. Node.js runs it as it runs Gatehouse. */
export function carrier(packageName: '@fastify/http-proxy' | 'http-proxy'): Contender {
  const name = packageName.replace('@', '').replace('/', '-')
  return {
    name,
    title: `${packageName}, no sign-in`,
    signsIn: false,
    can: new Set(),
    missing: () => undefined,
    version: () => versionOfPackage(packageName),
    runsWith: () => `${nodeRunsWith}; one process`,
    start: async (bed, { port, cpus, node, nodeOptions }) => {
      const running = startProgram({
        command: node,
        args: [...imageFlags, ...nodeOptions, program, packageName, `http://${bed.upstream}`, String(port)],
        cpus,
        env: nodeEnvironment(bed),
        logFile: join(folderFor(bed, `${name}-${port}`), 'output.log'),
      })
      await untilListening(port)
      return running
    },
  }
}

function versionOfPackage(name: string): string {
  const manifest = readFileSync(new URL(`../../node_modules/${name}/package.json`, import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}
