import { execFileSync } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { table } from '../report.ts'
import { memoryBytes } from '../usage.ts'
import { measureAll, record, standAll, withRedis } from './requests.ts'
import type { Scenario } from './scenario.ts'

export const messages: Scenario = {
  name: 'websocket-messages',
  title: 'WebSocket messages of 32 bytes that come back, 32 connections; a request is a message and its echo',
  async run(bench) {
    const stands = await standAll(withRedis(bench), {}, 'websockets')
    const load = { kind: 'websockets', connections: 32, areIdle: false } as const
    record(bench, await measureAll(bench, stands, load), 'cpu message', 'cpu')
  },
}

const wanted = 10_000
/** The number of open files of a process besides the two for each WebSocket. */
const otherFiles = 300

export const idleWebSockets: Scenario = {
  name: 'websocket-memory',
  title: 'Memory of idle WebSockets',
  async run(bench) {
    const limit = Number(execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' })) || Infinity
    const connections = Math.min(wanted, Math.floor((limit - otherFiles) / 2))
    if (connections < wanted)
      bench.print(`A process may have ${limit} files open here, which leaves ${connections} of ${wanted} WebSockets.`)
    const rows: string[][] = []
    for (const stand of await standAll(bench, {}, 'websockets')) {
      const { port, tls, visitors, pid, title } = stand
      const before = memoryBytes(pid)
      let open = NaN
      const started = async () => {
        // The process has released the memory that it needed to open them.
        await wait(3_000)
        open = memoryBytes(pid)
      }
      const order = { kind: 'websockets', areIdle: true, port, tls, visitors, connections, ms: 0 } as const
      const failure = await bench.bed.load(order, { started, ended: () => {} }).then(
        () => undefined,
        (error: unknown) => (error as Error).message.split('\n').slice(0, 2).join(' '),
      )
      const figures = [mib(before), mib(open), ((open - before) / connections / 1024).toFixed(1)]
      rows.push([title, ...(failure === undefined ? figures : [mib(before), '—', failure])])
    }
    bench.print(table(['', 'before, MB', `${connections} open, MB`, 'KiB each'], rows))
  },
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0)
}
