import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { gatehouse, root, startCommand } from './command.ts'
import type { Surroundings } from './gateway-process.ts'

/** Starts the gateway with a socket that stays open over its restarts. */
export function startWithKeptSocket(t: TestContext, { url, file, env }: Surroundings) {
  const holder = join(root, 'test', 'support', 'socket-holder.pl')
  // Before the command is killed: it would leave the gateway behind.
  t.after(async () => {
    command.child.kill('SIGTERM')
    await command.ended
  })
  const command = startCommand(t, [new URL(url).port, ...gatehouse, 'run', '--config', file], {
    program: ['perl', holder],
    env,
  })
  return command
}
