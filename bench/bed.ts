// What every contender finds: the upstream, the provider, Redis, a folder, and clients.
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { startRedis } from '../test/support/redis.ts'
import type { LoadMessage, LoadOrder, LoadResult } from './load/order.ts'
import { start, startServer } from './process.ts'
import { startProvider, type BenchProvider } from './provider.ts'

export interface Bed {
  readonly folder: string
  /** `127.0.0.1:PORT` */
  readonly upstream: string
  readonly redisPort: number
  readonly provider: BenchProvider
  /**
   * Lets the clients work. `started` is called, and waited for, when all are connected; `ended`
   * when the last answer has come.
   * @throws {Error} at the first answer that is not what it should be
   */
  load(order: LoadOrder, around?: { started(): unknown; ended(): unknown }): Promise<LoadResult>
  /** How many requests were served on this port so far. */
  served(port: number): number
  close(): Promise<void>
}

export async function makeBed(): Promise<Bed> {
  const over: (() => unknown)[] = []
  const scope = { after: (tidy: () => unknown) => void over.push(tidy) }
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const { url } = await startServer('upstream.ts')
  const redis = await startRedis(scope)
  const provider = await startProvider()
  scope.after(() => provider.close())
  let clients = start('load/clients.ts')
  const served = new Map<number, number>()
  return {
    folder,
    upstream: url.slice('http://'.length),
    redisPort: redis.port,
    provider,
    load: async (order, around) => {
      clients.send(order)
      for (;;) {
        const [message] = (await once(clients, 'message')) as [LoadMessage]
        if (message.kind === 'failed') {
          // Some of them may still be asking.
          clients.kill()
          clients = start('load/clients.ts')
          throw new Error(message.reason)
        }
        if (message.kind === 'done') {
          around?.ended()
          if (order.kind === 'requests') served.set(order.port, (served.get(order.port) ?? 0) + message.result.count)
          return message.result
        }
        await around?.started()
        clients.send('go')
      }
    },
    served: (port) => served.get(port) ?? 0,
    close: async () => {
      for (const tidy of over.reverse()) await tidy()
    },
  }
}

/** A folder of one's own in the bed. */
export function folderFor(bed: Bed, name: string): string {
  const folder = join(bed.folder, name)
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  return folder
}

/** Where a program is: on the PATH, or where Debian has those for administrators. */
export function find(program: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, program)).find((file) => existsSync(file))
}
