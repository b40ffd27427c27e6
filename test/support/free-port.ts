import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Files named after the ports that this process and others were given, as long as they run. */
const claims = join(tmpdir(), `gatehouse-ports-${process.getuid?.() ?? ''}`)
const claimed: string[] = []
process.on('exit', () => claimed.forEach((file) => rmSync(file, { force: true })))
/** A process that was killed gave nothing back; none runs for so long. In ms. */
const forgottenAfterMs = 30 * 60 * 1000

/**
 * A port nobody listens on, and that nobody else is given meanwhile, another process that looks for
 * one included. It lies below those that the system takes for connections and for port 0.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000)
    if (!claim(port)) continue
    const server = createServer()
    const listening = once(server.listen(port, '127.0.0.1'), 'listening')
    const isFree = await listening.then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

function claim(port: number): boolean {
  const file = join(claims, String(port))
  mkdirSync(claims, { recursive: true })
  const claimedAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Infinity
  if (Date.now() - claimedAt > forgottenAfterMs) rmSync(file, { force: true })
  try {
    closeSync(openSync(file, 'wx'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  claimed.push(file)
  return true
}
