// Puts pressure on a gateway from its own process: `pressing.ts ORDER`, as JSON, after "go". On
// "stop", or when everybody has been served, it reports what the clients got.
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, setGlobalDispatcher } from 'undici'
import { signIn } from './stand.ts'

/**
 * - `crawl`: each connection sends a request after each response.
 * - `rate`: one client sends this many requests per second, without waiting for responses.
 * - `arrive`: all connections are opened at once, with a request each, and again after a second
 *   where no 200 came.
 * - `sign-ins`: this many people begin to sign in within a second. Where they could not, they begin
 *   again after two to four seconds, as people who reload a page.
 */
export interface Pressure {
  readonly kind: 'crawl' | 'rate' | 'arrive' | 'sign-ins'
  readonly port: number
  /** Connections, requests per second, or people. */
  readonly count: number
  readonly path: string
  readonly cookies: readonly string[]
  /** The clients have this many addresses of the network 127.0.NETWORK.0. */
  readonly addresses: number
  readonly network: number
}

/** What the clients got. */
export interface Pressed {
  /** How many responses of each status, and how many connections were `closed` without one. */
  readonly statuses: Readonly<Record<string, number>>
  /** When everybody was served, in ms since the beginning. Absent: not everybody was. */
  readonly allServedMs?: number
}

const order = JSON.parse(process.argv[2] ?? '{}') as Pressure
const statuses: Record<string, number> = {}
let [isOver, served] = [false, 0]
let startedAt = 0
const note = (what: string | number) => void (statuses[what] = (statuses[what] ?? 0) + 1)
const addressOf = (index: number) => `127.0.${order.network}.${1 + (index % order.addresses)}`

function report(allServedMs?: number): void {
  if (isOver) return
  isOver = true
  const pressed: Pressed = { statuses, ...(allServedMs === undefined ? {} : { allServedMs }) }
  process.send?.(pressed, () => process.exit())
}
process.on('message', (message) => (message === 'go' ? begin() : report()))

function servedOne(): void {
  served += 1
  if (served === order.count) report(performance.now() - startedAt)
}

/** A connection that sends requests of one client, and is replaced when it ends. */
class Client {
  readonly #index: number
  readonly #answered: (status: number | 'closed') => void
  readonly #request: string
  #socket: Socket | undefined
  #isWaiting = false

  constructor(index: number, answered: (status: number | 'closed') => void) {
    const { cookies, path, port } = order
    const cookie = cookies[index % cookies.length]
    const fields = [`Host: 127.0.0.1:${port}`, ...(cookie === undefined ? [] : [`Cookie: ${cookie}`])]
    this.#request = [`GET ${path} HTTP/1.1`, ...fields, 'Accept: */*', '', ''].join('\r\n')
    this.#index = index
    this.#answered = answered
  }

  ask(): void {
    this.#isWaiting = true
    this.#socket ??= this.#open()
    this.#socket.write(this.#request)
  }

  #open(): Socket {
    const socket = connect({ port: order.port, host: '127.0.0.1', localAddress: addressOf(this.#index) })
    socket
      .on('error', () => {})
      .on('data', (part: Buffer) => {
        const status = /^HTTP\/1\.1 (\d{3}) /.exec(part.toString('latin1', 0, 32))?.[1]
        if (status !== undefined) this.#settle(Number(status))
      })
    return socket.once('close', () => {
      this.#socket = undefined
      this.#settle('closed')
    })
  }

  #settle(result: number | 'closed'): void {
    if (!this.#isWaiting) return
    this.#isWaiting = false
    note(result)
    if (!isOver) this.#answered(result)
  }
}

function crawl(): void {
  for (let index = 0; index < order.count; index += 1) {
    const client = new Client(index, () => setImmediate(() => client.ask()))
    client.ask()
  }
}

function arrive(): void {
  for (let index = 0; index < order.count; index += 1) {
    const client = new Client(index, (status) => (status === 200 ? servedOne() : setTimeout(() => client.ask(), 1000)))
    client.ask()
  }
}

async function keepRate(): Promise<void> {
  const idle: Client[] = []
  for (let index = 0; index < 256; index += 1) {
    const client = new Client(0, () => idle.push(client))
    idle.push(client)
  }
  for (let sent = 0; !isOver; await wait(1)) {
    const due = ((performance.now() - startedAt) / 1000) * order.count
    for (let client = idle.pop(); client !== undefined; client = sent < due ? idle.pop() : undefined) {
      client.ask()
      sent += 1
    }
    // A request that finds no idle connection is not sent: a script has a limited number of them.
    sent = Math.max(sent, Math.floor(due))
  }
}

async function person(index: number): Promise<void> {
  await wait((1000 * index) / order.count)
  while (!isOver) {
    const refused = await signIn(`http://127.0.0.1:${order.port}`).then(
      () => undefined,
      (error: unknown) => /with (\d{3})/.exec(String(error))?.[1] ?? 'closed',
    )
    note(refused ?? 200)
    if (refused === undefined) return servedOne()
    await wait(2000 + (2000 * index) / order.count)
  }
}

function begin(): void {
  startedAt = performance.now()
  if (order.kind === 'crawl') crawl()
  else if (order.kind === 'arrive') arrive()
  else if (order.kind === 'rate') void keepRate()
  else for (let index = 0; index < order.count; index += 1) void person(index)
}

setGlobalDispatcher(new Agent({ localAddress: addressOf(0) }))
process.send?.('loaded')
