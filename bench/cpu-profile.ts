// The output of V8's sampling profiler, in the format of a .cpuprofile file.
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import WebSocket from 'ws'

export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  /** The node of each sample, and the time since the previous sample, in µs. */
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: {
    readonly functionName: string
    readonly url: string
    /** From 0, as the next one. */
    readonly lineNumber: number
    readonly columnNumber: number
  }
}

/**
 * Controls a Node.js process over the Chrome DevTools Protocol. The process must run with
 * `--inspect=127.0.0.1:PORT`.
 */
export class Profiler {
  readonly #socket: WebSocket
  #lastId = 0

  static async connect(port: number): Promise<Profiler> {
    const response = await fetch(`http://127.0.0.1:${port}/json/list`)
    const [target] = (await response.json()) as { readonly webSocketDebuggerUrl: string }[]
    const socket = new WebSocket(target?.webSocketDebuggerUrl ?? '', { maxPayload: 2 ** 30 })
    await once(socket, 'open')
    return new Profiler(socket)
  }

  constructor(socket: WebSocket) {
    this.#socket = socket
  }

  /** @param interval the time between two samples, in µs */
  async start(interval: number): Promise<void> {
    await this.#ask('Profiler.enable')
    await this.#ask('Profiler.setSamplingInterval', { interval })
    await this.#ask('Profiler.start')
  }

  async stop(): Promise<CpuProfile> {
    const { profile } = (await this.#ask('Profiler.stop')) as { readonly profile: CpuProfile }
    this.#socket.close()
    return profile
  }

  #ask(method: string, params: object = {}): Promise<unknown> {
    const id = (this.#lastId += 1)
    return new Promise((resolve, reject) => {
      const onMessage = (data: WebSocket.RawData) => {
        const response = JSON.parse(String(data)) as { id?: number; result?: unknown; error?: { message: string } }
        if (response.id !== id) return
        this.#socket.off('message', onMessage)
        if (response.error) reject(new Error(`${method}: ${response.error.message}`))
        else resolve(response.result)
      }
      this.#socket.on('message', onMessage).send(JSON.stringify({ id, method, params }))
    })
  }
}

export interface SelfTime {
  readonly functionName: string
  /**
   * The source below src/ or the file of a package, with the line: `proxy/carry.ts:12`. Empty for
   * code of Node.js.
   */
  readonly place: string
  /** The time in µs, without the functions that it called. */
  readonly micros: number
}

/** The functions of a profile, by their own time, the longest first. Idle time is not included. */
export function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): readonly SelfTime[] {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const byFunction = new Map<string, SelfTime>()
  samples.forEach((id, index) => {
    const frame = frames.get(id)
    if (frame === undefined || frame.functionName === '(idle)') return
    const { functionName } = frame
    const place = placeOf(frame)
    const key = `${functionName} ${place}`
    const before = byFunction.get(key)?.micros ?? 0
    // A sample counts for the time until the next one.
    byFunction.set(key, {
      functionName: functionName || '(anonymous)',
      place,
      micros: before + (timeDeltas[index + 1] ?? 0),
    })
  })
  return [...byFunction.values()].sort((a, b) => b.micros - a.micros)
}

function placeOf({ url, lineNumber, columnNumber }: ProfileNode['callFrame']): string {
  if (url === '') return ''
  const source = sourceMapOf(url)?.findEntry(lineNumber, columnNumber)
  const [file, line] =
    source !== undefined && 'originalSource' in source
      ? [source.originalSource, source.originalLine]
      : [url, lineNumber]
  return `${file.replace(/^.*\/(?:node_modules|src)\//, '')}:${line + 1}`
}

const sourceMaps = new Map<string, SourceMap | undefined>()

/** The source map beside a module of the built gateway. */
function sourceMapOf(url: string): SourceMap | undefined {
  if (!sourceMaps.has(url)) sourceMaps.set(url, readSourceMap(url))
  return sourceMaps.get(url)
}

function readSourceMap(url: string): SourceMap | undefined {
  if (!url.startsWith('file:') || !existsSync(new URL(`${url}.map`))) return undefined
  return new SourceMap(JSON.parse(readFileSync(new URL(`${url}.map`), 'utf8')) as SourceMapPayload)
}
