// The network between the parties of a chaos run: each has an address of its own (127.x.y.1), at
// which a TCP proxy leads to its real port. So a proxy knows both ends of each connection.
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { now, type Touch } from './history.ts'
import { partOf } from './parties.ts'
import type { Touches } from './touches.ts'

/** What is wrong between two parties, in both directions. */
export interface Trouble {
  /** Names of parties; `*` means all. */
  readonly between: readonly [string, string]
  /**
   * `silence`: no byte arrives, and no connection ends. `reset`: connections are reset. Otherwise
   * bytes wait, and wait longer when a packet is lost: TCP then repeats it after a while.
   */
  readonly how: 'silence' | 'reset' | { readonly delayMs: number; readonly loss: number }
}

/** A way to a party. Connections that exist keep their target. */
export interface Link {
  target: number
}

interface Pair {
  readonly ends: Ends
  readonly sockets: readonly Socket[]
  /** Since when the server owes a response to bytes that it has got. */
  owedSince?: number | undefined
  /** One party has closed it. */
  isOver?: true
  /** How many replicas a `WAIT` of Redis asks for. */
  wanted?: number
}

type Ends = readonly [from: string, to: string]

/** A shorter silence or delay is not recorded, in ms. */
const noticeableMs = 50
/** Errors of Redis that are no matter of the command. */
const storeError = /(?:^|\r\n)-(NOREPLICAS|MISCONF|READONLY|CLUSTERDOWN|LOADING|MASTERDOWN|TRYAGAIN|UNKILLABLE|BUSY)\b/

/** Of a retransmission, in ms (RFC 6298 begins with 1 s, Linux with 200 ms). */
const retransmission = { least: 200, most: 1_000 }

export class Network {
  /** Several runs at the same time have different addresses. */
  readonly #prefix = `127.${64 + (process.pid % 128)}`
  readonly #touches: Touches
  readonly #names = new Map<string, string>()
  readonly #hosts = new Map<string, string>()
  readonly #pairs = new Set<Pair>()
  readonly #servers = new Set<Server>()
  readonly #troubles = new Set<Trouble>()
  #changed = Promise.withResolvers<void>()

  constructor(touches: Touches) {
    this.#touches = touches
  }

  /**
   * The address of a party. It connects from this address too; processes of one party may have
   * addresses of their own, with another last number.
   */
  host(name: string): string {
    const host = this.#hosts.get(name) ?? `${this.#prefix}.${this.#hosts.size + 1}.1`
    this.#hosts.set(name, host)
    this.#names.set(host, name)
    return host
  }

  /** The party with an address; empty when it is not known. */
  nameOf(host: string | undefined): string {
    return this.#names.get(host?.replace(/\d+$/, '1') ?? '') ?? ''
  }

  /** Leads from a port at the address of a party to a port of this machine. */
  async link(name: string, port: number, target = port): Promise<Link> {
    const link: Link = { target }
    const server = createServer({ allowHalfOpen: true }, (client) => void this.#accept(client, name, link))
    this.#servers.add(server)
    await once(server.listen(port, this.host(name)), 'listening')
    return link
  }

  /** Makes trouble until the returned function is called. */
  trouble(trouble: Trouble): () => void {
    this.#troubles.add(trouble)
    if (trouble.how === 'reset')
      for (const { ends, sockets } of this.#pairs)
        if (isBetween(trouble, ends)) {
          this.#touch(ends, 'reset')
          for (const socket of sockets) socket.resetAndDestroy()
        }
    this.#notify()
    return () => {
      this.#troubles.delete(trouble)
      this.#notify()
    }
  }

  /** Whether bytes may be held back or lost between two parties. */
  isTroubled(...ends: readonly [string, string]): boolean {
    return this.#troubleOf(ends) !== undefined
  }

  /** The parties that have a connection to this one. */
  clientsOf(name: string): ReadonlySet<string> {
    return new Set([...this.#pairs].flatMap(({ ends }) => (ends[1] === name ? [ends[0]] : [])))
  }

  close(): void {
    for (const server of this.#servers) server.close()
    for (const { sockets } of this.#pairs) for (const socket of sockets) socket.destroy()
  }

  #notify(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  #troubleOf(ends: Ends): Trouble | undefined {
    return [...this.#troubles].find((trouble) => isBetween(trouble, ends))
  }

  /** A replica is accused: only what the proxy does counts on the connections to it. */
  #touch([from, to]: Ends, how: Touch['how'], { begin = now(), end = begin, code }: Partial<Touch> = {}): void {
    if (partOf(to) === 'clients' && how !== 'held' && how !== 'reset') return
    this.#touches.add({ from, to, how, begin, end, ...(code !== undefined && { code }) })
  }

  async #accept(client: Socket, name: string, link: Link): Promise<void> {
    const ends = [this.nameOf(client.remoteAddress), name] as const
    client.on('error', () => {})
    const waiting = { ends, sockets: [client] }
    this.#pairs.add(waiting)
    await this.#passage(ends)
    this.#pairs.delete(waiting)
    if (client.destroyed) return
    if (this.#troubleOf(ends)?.how === 'reset') {
      this.#touch(ends, 'reset')
      return void client.resetAndDestroy()
    }
    const localAddress = client.remoteAddress ?? '127.0.0.1'
    const server = connect({ host: '127.0.0.1', port: link.target, localAddress, allowHalfOpen: true })
    const pair: Pair = { ends, sockets: [client, server] }
    this.#pairs.add(pair)
    server.on('error', () => {})
    for (const socket of pair.sockets) socket.setNoDelay(true)
    const isConnected = await once(server, 'connect').then(
      () => true,
      () => false,
    )
    if (isConnected) await Promise.all([this.#carry(client, server, pair), this.#carry(server, client, pair)])
    else {
      this.#touch(ends, 'refused')
      client.resetAndDestroy()
    }
    this.#pairs.delete(pair)
  }

  /** Carries bytes one way, then the end. */
  async #carry(from: Socket, to: Socket, pair: Pair): Promise<void> {
    const { ends } = pair
    const isFromClient = from === pair.sockets[0]
    let isComplete = true
    try {
      for await (const bytes of from.iterator({ destroyOnReturn: false })) {
        this.#note(bytes as Buffer, pair, isFromClient)
        await this.#passage(ends)
        if (isFromClient) pair.owedSince ??= now()
        if (!to.write(bytes as Buffer)) await Promise.race([once(to, 'drain'), once(to, 'close')])
      }
    } catch {
      isComplete = false
    }
    this.#noteEnd(pair, isFromClient)
    // An end is silent too while nothing arrives.
    await this.#passage(ends)
    if (isComplete) to.end()
    else {
      to.resetAndDestroy()
      from.destroy()
    }
  }

  /** Notes what bytes say about the party that a replica or a browser has connected to. */
  #note(bytes: Buffer, pair: Pair, isFromClient: boolean): void {
    const isStore = partOf(pair.ends[1]) === 'store'
    if (isFromClient) {
      const wait = isStore && /\$4\r\nwait\r\n\$1\r\n(\d)/i.exec(bytes.toString('latin1'))
      if (wait) pair.wanted = Number(wait[1])
      return
    }
    this.#noteSilence(pair)
    if (!isStore) return
    const text = bytes.toString('latin1', 0, 4_096)
    const { wanted = 0 } = pair
    const acknowledged = wanted > 0 ? /:(\d)\r\n$/.exec(text)?.[1] : undefined
    const isShort = acknowledged !== undefined && Number(acknowledged) < wanted
    const code = storeError.exec(text)?.[1] ?? (isShort ? 'WAIT' : undefined)
    if (acknowledged !== undefined) pair.wanted = 0
    if (code !== undefined) this.#touch(pair.ends, 'error', { code })
  }

  #noteSilence(pair: Pair): void {
    const { owedSince: begin = Infinity } = pair
    const [from, to] = pair.ends
    // Nodes of a store talk to each other in other ways. Over HTTP/2, not each frame has a
    // response; an application is a part of this process, whose own delay is recorded.
    const isExpected = partOf(from) === 'clients' && partOf(to) !== 'application'
    if (isExpected && now() - begin > noticeableMs) this.#touch(pair.ends, 'silent', { begin, end: now() })
    pair.owedSince = undefined
  }

  /** Notes who ended a connection. A store never closes one that is idle. */
  #noteEnd(pair: Pair, isByClient: boolean): void {
    const { isOver, owedSince } = pair
    pair.isOver = true
    this.#noteSilence(pair)
    if (isOver || isByClient) return
    if (owedSince !== undefined || partOf(pair.ends[1]) === 'store') this.#touch(pair.ends, 'closed')
  }

  /** Resolves when the next bytes arrive. */
  async #passage(ends: Ends): Promise<void> {
    const begin = now()
    for (;;) {
      const how = this.#troubleOf(ends)?.how
      if (how === undefined || how === 'reset') break
      if (how === 'silence') await this.#changed.promise
      else {
        const { least, most } = retransmission
        const isLost = Math.random() < how.loss
        await pause(how.delayMs + (isLost ? least + Math.random() * (most - least) : 0))
        break
      }
    }
    if (now() - begin > noticeableMs) this.#touch(ends, 'held', { begin, end: now() })
  }
}

function isBetween({ between: [one, other] }: Trouble, [from, to]: Ends): boolean {
  const matches = (wanted: string, name: string) => wanted === '*' || wanted === name
  return (matches(one, from) && matches(other, to)) || (matches(one, to) && matches(other, from))
}
