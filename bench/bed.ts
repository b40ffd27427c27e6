// The environment of every contender: the upstream, the provider, Redis, a folder, and clients.
import { spawnSync } from 'node:child_process'
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
   * Carries out a load. Calls and awaits `started` when all clients are connected, and `ended`
   * after the last response.
   * @throws {Error} at the first unexpected response
   */
  load(order: LoadOrder, around?: { started(): unknown; ended(): unknown }): Promise<LoadResult>
  /** The number of requests that this port has served. */
  served(port: number): number
  close(): Promise<void>
}

export async function makeBed(): Promise<Bed> {
  const over: (() => unknown)[] = []
  const scope = { after: (tidy: () => unknown) => void over.push(tidy) }
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const { url } = await startServer('upstream.ts', [folder])
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
          // Some of the clients may still send requests.
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

/** A new folder in the folder of the bench. */
export function folderFor(bed: Bed, name: string): string {
  const folder = join(bed.folder, name)
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  return folder
}

/** The part of what a program prints that matches, or all of it. */
export function versionOf(program: string, args: readonly string[], pattern: RegExp): string {
  const { stdout, stderr } = spawnSync(find(program) ?? program, args, { encoding: 'utf8' })
  const said = `${stdout}${stderr}`
  return (pattern.exec(said)?.[1] ?? said).trim()
}

/** Finds a program on the PATH, or in the folders of Debian for administrators. */
export function find(program: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, program)).find((file) => existsSync(file))
}
