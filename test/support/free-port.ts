import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The folder has one file for each port that a running test process has reserved. */
const claims = join(tmpdir(), `gatehouse-ports-${process.getuid?.() ?? ''}`)
const claimed: string[] = []
process.on('exit', () => claimed.forEach((file) => rmSync(file, { force: true })))
/** A killed process leaves its files behind. No test process runs longer than this time, in ms. */
const forgottenAfterMs = 30 * 60 * 1000

/**
 * Reserves a free port that no other caller gets, in this process or another. The port lies below
 * the range that the system uses for connections and for port 0.
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
