import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Scope } from './redis.ts'

/** A command, and how to send another one in its place. */
export interface SentCommand {
  readonly args: readonly string[]
  /** Sends a command of its own to Redis, whose reply the client does not get. */
  aside(...args: readonly string[]): void
  /** Resolves when another connection has got the reply to a command with this name. */
  elsewhere(name: string): Promise<unknown>
}

/**
 * Returns the command that Redis gets, an error for the client, or nothing: it gets it as it is.
 */
export type Bend = (
  command: SentCommand,
) => readonly string[] | Error | undefined | Promise<readonly string[] | Error | undefined>

export interface BentRedis {
  readonly port: number
  readonly url: string
  /** Absent: every command is passed on as it is. */
  bend: Bend | undefined
}

/** A real Redis that seems to be another server: some of its commands are changed on the way. */
export async function startBentRedis(scope: Scope, target: number, bend?: Bend): Promise<BentRedis> {
  const sockets = new Set<Socket>()
  const waiting: { readonly name: string; readonly from: Socket; readonly resolve: (value: unknown) => void }[] = []
  const server = createServer((client) => {
    const redis = connect(target, '127.0.0.1')
    let [received, queue] = ['', Promise.resolve()]
    /** For each reply that is due: whether it is for the client, or the error in its place. */
    const due: { readonly name: string; readonly kind: boolean | string }[] = []
    const write = (args: readonly string[]) => redis.write(encode(args), 'latin1')
    const handle = async (args: readonly string[]) => {
      const sent = {
        args,
        aside: (...other: readonly string[]) => {
          due.push({ name: '', kind: false })
          write(other)
        },
        elsewhere: (name: string) =>
          new Promise((resolve) => {
            waiting.push({ name, from: client, resolve })
            // The client sends nothing else if it gives up.
            client.once('close', resolve)
          }),
      }
      const changed = await bent.bend?.(sent)
      const name = args[0]?.toUpperCase() ?? ''
      due.push({ name, kind: changed instanceof Error ? `-${changed.message}\r\n` : true })
      write(changed instanceof Error ? ['PING'] : (changed ?? args))
    }
    client.on('data', (bytes: Buffer) => {
      received += bytes.toString('latin1')
      for (let parsed = parse(received); parsed !== undefined; parsed = parse(received)) {
        const { args, length } = parsed
        received = received.slice(length)
        queue = queue.then(() => handle(args))
      }
    })
    let replies = ''
    redis.on('data', (bytes: Buffer) => {
      replies += bytes.toString('latin1')
      for (let length = replyLength(replies, 0); length !== undefined; length = replyLength(replies, 0)) {
        const reply = replies.slice(0, length)
        replies = replies.slice(length)
        // Messages are no replies.
        const isMessage = /^\*3\r\n\$7\r\nmessage/.test(reply)
        const { name = '', kind = true } = isMessage ? {} : (due.shift() ?? {})
        if (kind !== false) client.write(typeof kind === 'string' ? kind : reply, 'latin1')
        for (const each of waiting.filter((other) => other.name === name && other.from !== client))
          each.resolve(undefined)
      }
    })
    for (const socket of [client, redis]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        redis.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  const bent: BentRedis = { port, url: `redis://127.0.0.1:${port}`, bend }
  return bent
}

/**
 * Changes the text of each script. A changed script has another hash, so it is always sent whole.
 */
export function scriptsAs(change: (lua: string) => string): Bend {
  return ({ args: [command = '', lua = '', ...rest] }) => {
    const isText = command.toUpperCase() === 'EVAL'
    if (command.toUpperCase() === 'EVALSHA') return new Error('NOSCRIPT No matching script. Please use EVAL.')
    return isText ? [command, change(lua), ...rest] : undefined
  }
}

function encode(args: readonly string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`
}

/** The command at the beginning of the bytes. */
function parse(bytes: string): { readonly args: readonly string[]; readonly length: number } | undefined {
  const length = replyLength(bytes, 0)
  if (length === undefined) return undefined
  let at = bytes.indexOf('\r\n') + 2
  const args: string[] = []
  while (at < length) {
    const end = bytes.indexOf('\r\n', at)
    const size = Number(bytes.slice(at + 1, end))
    args.push(bytes.slice(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
  return { args, length }
}

/** Where the value ends that begins here (RESP2); `undefined` when it is not complete. */
function replyLength(bytes: string, at: number): number | undefined {
  const end = bytes.indexOf('\r\n', at)
  if (end < 0) return undefined
  const size = Number(bytes.slice(at + 1, end))
  let next = end + 2
  if (bytes[at] === '$') {
    if (size >= 0) next += size + 2
    return next <= bytes.length ? next : undefined
  }
  if (bytes[at] !== '*') return next
  for (let n = 0; n < size; n += 1) {
    const after = replyLength(bytes, next)
    if (after === undefined) return undefined
    next = after
  }
  return next
}
