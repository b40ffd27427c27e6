// The network between the parties of a chaos run: each has an address of its own (127.x.y.1), at
// which a TCP proxy leads to its real port. So a proxy knows both ends of each connection.
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

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
  readonly ends: readonly [string, string]
  readonly sockets: readonly Socket[]
}

/** Of a retransmission, in ms (RFC 6298 begins with 1 s, Linux with 200 ms). */
const retransmission = { least: 200, most: 1_000 }

export class Network {
  /** Several runs at the same time have different addresses. */
  readonly #prefix = `127.${64 + (process.pid % 128)}`
  readonly #names = new Map<string, string>()
  readonly #hosts = new Map<string, string>()
  readonly #pairs = new Set<Pair>()
  readonly #servers = new Set<Server>()
  readonly #troubles = new Set<Trouble>()
  #changed = Promise.withResolvers<void>()

  /** The address of a party. It connects from this address too. */
  host(name: string): string {
    const host = this.#hosts.get(name) ?? `${this.#prefix}.${this.#hosts.size + 1}.1`
    this.#hosts.set(name, host)
    this.#names.set(host, name)
    return host
  }

  /** The party with an address; empty when it is not known. */
  nameOf(host: string | undefined): string {
    return this.#names.get(host ?? '') ?? ''
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
        if (isBetween(trouble, ends)) for (const socket of sockets) socket.resetAndDestroy()
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

  #troubleOf(ends: readonly [string, string]): Trouble | undefined {
    return [...this.#troubles].find((trouble) => isBetween(trouble, ends))
  }

  async #accept(client: Socket, name: string, link: Link): Promise<void> {
    const ends = [this.nameOf(client.remoteAddress), name] as const
    client.on('error', () => {})
    const waiting = { ends, sockets: [client] }
    this.#pairs.add(waiting)
    await this.#passage(ends)
    this.#pairs.delete(waiting)
    if (client.destroyed) return
    if (this.#troubleOf(ends)?.how === 'reset') return void client.resetAndDestroy()
    const localAddress = client.remoteAddress ?? '127.0.0.1'
    const server = connect({ host: '127.0.0.1', port: link.target, localAddress, allowHalfOpen: true })
    const pair = { ends, sockets: [client, server] }
    this.#pairs.add(pair)
    server.on('error', () => {})
    for (const socket of pair.sockets) socket.setNoDelay(true)
    const isConnected = await once(server, 'connect').then(
      () => true,
      () => false,
    )
    if (isConnected) await Promise.all([this.#carry(client, server, ends), this.#carry(server, client, ends)])
    else client.resetAndDestroy()
    this.#pairs.delete(pair)
  }

  /** Carries bytes one way, then the end. */
  async #carry(from: Socket, to: Socket, ends: readonly [string, string]): Promise<void> {
    let isComplete = true
    try {
      for await (const bytes of from.iterator({ destroyOnReturn: false })) {
        await this.#passage(ends)
        if (!to.write(bytes as Buffer)) await Promise.race([once(to, 'drain'), once(to, 'close')])
      }
    } catch {
      isComplete = false
    }
    // An end is silent too while nothing arrives.
    await this.#passage(ends)
    if (isComplete) to.end()
    else {
      to.resetAndDestroy()
      from.destroy()
    }
  }

  /** Resolves when the next bytes arrive. */
  async #passage(ends: readonly [string, string]): Promise<void> {
    for (;;) {
      const how = this.#troubleOf(ends)?.how
      if (how === undefined || how === 'reset') return
      if (how === 'silence') await this.#changed.promise
      else {
        const { least, most } = retransmission
        const isLost = Math.random() < how.loss
        return pause(how.delayMs + (isLost ? least + Math.random() * (most - least) : 0))
      }
    }
  }
}

function isBetween({ between: [one, other] }: Trouble, [from, to]: readonly [string, string]): boolean {
  const matches = (wanted: string, name: string) => wanted === '*' || wanted === name
  return (matches(one, from) && matches(other, to)) || (matches(one, to) && matches(other, from))
}
