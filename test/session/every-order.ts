import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { scripts } from '../../src/session/store/redis/scripts.ts'

/**
 * Runs a scenario in every order of its steps. A step is one command that Redis carries out, or one
 * request to the provider. The search is stateless: each order is run from the beginning, and the
 * actors are real code that waits before each of its steps. Orders that differ only in steps that
 * do not depend on each other are one order (sleep sets: Godefroid, Partial-Order Methods).
 */

/** One thing that happens by itself, in steps. */
export interface Actor {
  readonly name: string
  /**
   * Starts after the first step of this actor. For two that are alike: each order has a mirror
   * image, which is left out.
   */
  readonly after?: string
  run(): Promise<unknown>
}

export interface Scenario {
  /** Each order has actors and data of its own. */
  begin(): Promise<Order>
}

export interface Order {
  readonly actors: readonly Actor[]
  /**
   * A random name that is there from the beginning. Others are called after the actor that uses
   * them first.
   */
  readonly name: string
  readonly finish: () => Promise<void>
}

export interface Searched {
  readonly orders: number
  readonly steps: number
}

/** What a step reads and writes. */
interface Access {
  readonly what: string
  readonly reads: readonly string[]
  readonly writes: readonly string[]
}

interface Step extends Access {
  /** The actor and the count of its steps: the same in all orders that begin alike. */
  readonly id: string
  readonly actor: string
  readonly go: () => Promise<unknown>
}

interface Choice {
  readonly id: string
  readonly access: Access & { readonly actor: string }
}

/** A point where more than one step may be next. */
interface Node {
  readonly enabled: readonly Choice[]
  readonly asleep: ReadonlyMap<string, Choice>
  readonly tried: Map<string, Choice>
  chosen: Choice
}

const running = new AsyncLocalStorage<{ readonly search: Search; readonly actor: string }>()

/** From now on, an actor of this order takes no further step. */
export type Stop = (actor: string) => void

/** A step that is not a command of Redis. Outside of a search it is taken at once. */
export async function step<T>(access: Access, work: (stop: Stop) => T | Promise<T>): Promise<T> {
  const at = running.getStore()
  if (at === undefined) return work(() => {})
  return at.search.wait(at.actor, access, async () => work((actor) => at.search.stop(actor))) as Promise<T>
}

const original = Redis.prototype.sendCommand
/**
 * Commands of an actor wait for their turn; all others are sent at once. No replica subscribes,
 * because notices would arrive at any time. Without notices, no session is served from memory, so
 * that each result comes from the scripts.
 */
Redis.prototype.sendCommand = function sendInTurn(this: Redis, command, stream) {
  if ((command as { readonly name?: unknown }).name === 'subscribe') return command.promise as never
  const at = running.getStore()
  if (at === undefined || stream !== undefined) return original.call(this, command, stream)
  const send = () => running.exit(() => original.call(this, command) as Promise<unknown>)
  at.search.wait(at.actor, at.search.named(accessOf(command as never), at.actor), send).catch(() => {})
  return command.promise as never
}

const readers = new Set(['hmget', 'get', 'zrange', 'zrevrange', 'time'])

/** The script that reads a session: by its hash, and whole when it is sent for the first time. */
const readingScript = new Set([scripts.read.trim(), createHash('sha1').update(scripts.read.trim()).digest('hex')])

function accessOf(command: { readonly name: string; readonly args: readonly unknown[] }): Access {
  const { name, args } = command
  const isScript = name === 'evalsha' || name === 'eval'
  const keys = (isScript ? args.slice(2, 2 + Number(args[1])) : args.slice(0, 1)).map(String)
  const what = isScript ? `script on ${keys.join(' ')}` : `${name} ${keys.join(' ')}`
  const isReader = readers.has(name) || (isScript && readingScript.has(String(args[0])))
  return isReader ? { what, reads: keys, writes: [] } : { what, reads: [], writes: keys }
}

function depend(one: Choice, other: Choice): boolean {
  const [a, b] = [one.access, other.access]
  if (a.actor === b.actor) return true
  const touches = (left: Access, right: Choice['access']) =>
    left.writes.some((key) => right.writes.includes(key) || right.reads.includes(key) || key === stepsOf(right.actor))
  return touches(a, b) || touches(b, a)
}

/** The name of the steps of an actor, for the step that stops it. */
export function stepsOf(actor: string): string {
  return `steps of ${actor}`
}

/** One order, while it is run. */
class Search {
  readonly waiting = new Map<string, Step>()
  readonly #names: Map<string, string>
  readonly #counts = new Map<string, number>()
  readonly #stopped = new Set<string>()

  constructor(name: string) {
    this.#names = new Map([[name, 'the first']])
  }

  /** The same access with names that are the same in all orders. */
  named({ what, reads, writes }: Access, actor: string): Access {
    const rename = (text: string) =>
      text.replaceAll(/[\w-]{32,}/g, (name) => {
        const known =
          this.#names.get(name) ??
          `${actor}'s ${[...this.#names.values()].filter((other) => other.startsWith(`${actor}'s`)).length}`
        this.#names.set(name, known)
        return known
      })
    return { what: rename(what), reads: reads.map(rename), writes: writes.map(rename) }
  }

  wait(actor: string, access: Access, go: () => Promise<unknown>): Promise<unknown> {
    const count = this.#counts.get(actor) ?? 0
    this.#counts.set(actor, count + 1)
    if (this.#stopped.has(actor)) return new Promise(() => {})
    const id = `${actor} ${count}`
    return new Promise((resolve, reject) => {
      const taken = async () => {
        this.waiting.delete(id)
        await go().then(resolve, reject)
      }
      this.waiting.set(id, { ...access, id, actor, go: taken })
    })
  }

  /** A step that was there in an earlier order. On a busy machine it comes later. */
  async find(id: string): Promise<Step | undefined> {
    const end = performance.now() + 20_000
    while (!this.waiting.has(id) && performance.now() < end) await turn()
    return this.waiting.get(id)
  }

  stop(actor: string): void {
    this.#stopped.add(actor)
    for (const [id, step] of this.waiting) if (step.actor === actor) this.waiting.delete(id)
  }
}

/** Runs every order. @throws what an actor or `finish` throws, with the order in which it did */
export async function searchOrders(scenario: Scenario): Promise<Searched> {
  const path: Node[] = []
  let [orders, steps] = [0, 0]
  do {
    const { actors, name, finish } = await scenario.begin()
    const search = new Search(name)
    const failures: unknown[] = []
    const underWay = new Set<string>()
    const start = (actor: Actor) => {
      const { name: about } = actor
      underWay.add(about)
      const fail = (error: unknown) => void failures.push(error)
      running.run(
        { search, actor: about },
        () =>
          void actor
            .run()
            .catch(fail)
            .finally(() => underWay.delete(about)),
      )
    }
    /** Resolves when every actor waits for its next step, or is done; or for another actor. */
    const settled = async () => {
      const isSettled = () => {
        const waiting = new Set([...search.waiting.values()].map(({ actor }) => actor))
        return [...underWay].every((actor) => waiting.has(actor))
      }
      for (let turns = 0; turns < 2 || (turns < manyTurns && !isSettled()); turns += 1) await turn()
    }
    for (const actor of actors) if (actor.after === undefined) start(actor)
    const later = new Set(actors.filter(({ after }) => after !== undefined))
    await settled()
    let isComplete = true
    for (let depth = 0; search.waiting.size > 0; depth += 1) {
      const node = (path[depth] ??= arrive(path[depth - 1], search))
      if (node.chosen === nothing) {
        isComplete = false
        break
      }
      const next = await search.find(node.chosen.id)
      if (next === undefined) throw new Error(`${node.chosen.id} is not there again: the scenario is not deterministic`)
      await next.go()
      for (const actor of later) if (actor.after === next.actor && later.delete(actor)) start(actor)
      await settled()
      steps += 1
    }
    const told = () =>
      `\nin this order:\n${path.map(({ chosen }) => `  ${chosen.id}: ${chosen.access.what}`).join('\n')}`
    if (isComplete) orders += 1
    try {
      if (failures.length > 0) throw failures[0]
      if (isComplete) await finish()
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : String(error)}${told()}`, { cause: error })
    }
  } while (turnBack(path))
  return { orders, steps }
}

/** On a busy machine, an actor needs more turns than one or two until its next step. */
const manyTurns = 30

const nothing: Choice = { id: '', access: { what: '', actor: '', reads: [], writes: [] } }

function arrive(before: Node | undefined, search: Search): Node {
  const enabled = [...search.waiting.values()].map(({ id, actor, what, reads, writes }): Choice => ({
    id,
    access: { what, actor, reads, writes },
  }))
  // What was tried before its time and has nothing to do with what came in between leads to where
  // we have been.
  const asleep = new Map(
    before === undefined
      ? []
      : [...before.asleep, ...before.tried].filter(
          ([id, choice]) => id !== before.chosen.id && !depend(choice, before.chosen),
        ),
  )
  const chosen = enabled.find(({ id }) => !asleep.has(id)) ?? nothing
  return { enabled, asleep, tried: new Map(), chosen }
}

/** Goes back to the last point where another step may be next. `false`: there is none. */
function turnBack(path: Node[]): boolean {
  for (let node = path.at(-1); node !== undefined; path.pop(), node = path.at(-1)) {
    node.tried.set(node.chosen.id, node.chosen)
    const { asleep, tried } = node
    const next = node.enabled.find(({ id }) => !asleep.has(id) && !tried.has(id))
    if (next === undefined) continue
    node.chosen = next
    return true
  }
  return false
}
