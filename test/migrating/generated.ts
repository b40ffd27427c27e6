import assert from 'node:assert/strict'
import process from 'node:process'
import { test } from 'node:test'
import type { Received } from '../proxies/site.ts'
import { freePort } from '../support/free-port.ts'
import { startGateway, startPeer, type Peer } from './compare.ts'
import type { People } from './pairs.ts'

/** A configuration of another program that a seed made. */
export interface Generated {
  readonly theirs: string
  /** Paths that the configuration names. */
  readonly paths: readonly string[]
  /** A page that leads to the sign-in. */
  readonly signInAt: string
  /** The names of fields that clients forge. */
  readonly fields: readonly string[]
}

/** Choices that a seed repeats. */
export class Choices {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  /** A number from 0, less than `end`. */
  below(end: number): number {
    // mulberry32: every seed has other choices, and no package is needed.
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end)
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T
  }

  some<T>(of: readonly T[], most: number): readonly T[] {
    return Array.from({ length: this.below(most + 1) }, () => this.one(of))
  }

  is(percent: number): boolean {
    return this.below(100) < percent
  }
}

const given = process.env['FUZZ_SEED']
const seeds =
  given === undefined
    ? Array.from({ length: Number(process.env['RUNS'] ?? 40) }, (_, index) => (Date.now() % 1e9) + index)
    : [Number(given)]

const requestsForEach = 160

/**
 * Compares the program with what `gatehouse import` makes of configurations that seeds made. The
 * gateway may deny more. It must not admit a request that the program denies, nor forward a forged
 * field that the program does not forward, nor send another value of a field.
 */
export function compareGenerated(peer: Peer, people: People, generate: (choices: Choices) => Generated): void {
  for (const seed of seeds)
    test(
      `${peer.name}: import admits no more, with the configuration of FUZZ_SEED=${seed}`,
      { skip: peer.skip },
      async (t) => {
        const choices = new Choices(seed)
        const { theirs, paths, signInAt, fields } = generate(choices)
        const url = `http://127.0.0.1:${await freePort()}`
        const callbacks = [`${url}/.gatehouse/callback`, url + peer.callback]
        const there = await startPeer(t, peer, { theirs, people, signInAt, callbacks })
        let file = ''
        const here = await startGateway(t, url, signInAt, async (application) => {
          file = (await peer.imported?.(t, there.placed(theirs, url, application), url)) ?? ''
          return file
        })
        const wrong = new Set<string>()
        let [both, asked] = [0, 0]
        for (const { person, method, path } of requestsOf(choices, [...people.keys()], paths)) {
          const headers = Object.fromEntries(fields.map((name) => [name, `forged-${name}`]))
          const outcome = await here.side.ask(person, method, path, headers)
          asked += 1
          if (outcome !== 'pass' || peer.differs?.(method, path) === true) continue
          const [sent] = here.application.received
          const expected = await firstPass(readingsOf(path), (each) => there.side.ask(person, method, each, headers))
          const shown = `${person ?? 'nobody'} ${method} ${path}`
          if (expected !== 'pass') wrong.add(`${shown}: admitted, and not ${expected}`)
          else
            for (const difference of differences(sent, there.application.received[0]))
              wrong.add(`${shown}: ${difference}`)
          both += 1
        }
        t.diagnostic(`requests ${asked}, admitted ${both}`)
        assert.ok(wrong.size === 0, [...[...wrong].slice(0, 20), '', theirs, '---', file].join('\n'))
      },
    )
}

/**
 * A path, and what it also means here: a rule that restricts a path also matches in other cases, as
 * the pages say, and the gateway decides about each reading of `/./a` and `/a%2fb`.
 */
function readingsOf(path: string): readonly string[] {
  const { pathname } = new URL(`http://a${path}`)
  return [path, path.toLowerCase(), pathname, pathname.replaceAll(/(?:%2f|\/)+/gi, '/')]
}

/** The outcome of the first of these paths that passes, or that of the first one. */
async function firstPass<T>(paths: readonly string[], ask: (path: string) => Promise<T>): Promise<T> {
  const [first = '', ...others] = [...new Set(paths)]
  const outcome = await ask(first)
  for (const path of others) if (outcome !== 'pass' && (await ask(path)) === 'pass') return 'pass' as T
  return outcome
}

function requestsOf(choices: Choices, people: readonly string[], paths: readonly string[]) {
  const methods = ['GET', 'GET', 'GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH']
  return Array.from({ length: requestsForEach }, () => ({
    person: choices.one([undefined, ...people]),
    method: choices.one(methods),
    path: spelled(choices.one(paths), choices),
  }))
}

/** A path, or another spelling of it, or a path near it. */
function spelled(path: string, choices: Choices): string {
  const letter = /[a-z]/.exec(path)?.[0] ?? 'a'
  return choices.one([
    ...[path, path, path, path, `${path}/`, `${path}/x`, `${path}x`, `${path}-other`, `${path}.css`, `${path};x`],
    ...[path.toUpperCase(), `/${path}`, path.replace(letter, `%${letter.charCodeAt(0).toString(16)}`)],
    ...[`${path}/../other`, `/x/..${path}`, `/.${path}`, `${path}%2fx`, `${path}?a=/admin`, path.replace(/\/$/, '')],
    ...[`${path}/a.css`, `${path}/edit`, path.replace('/', '/%2e/'), `${path}%20`],
  ])
}

/** Names as applications read them. */
function fieldsOf(request: Received | undefined): ReadonlyMap<string, string> {
  const named = (request?.headers ?? []).map(
    ([name, value]) => [name.toLowerCase().replaceAll(/[^a-z\d]+/g, '-'), value] as const,
  )
  return new Map(named)
}

function differences(here: Received | undefined, there: Received | undefined): readonly string[] {
  const [ours, theirs] = [fieldsOf(here), fieldsOf(there)]
  return [...ours].flatMap(([name, value]) => {
    if (value.includes('forged-')) return theirs.get(name)?.includes('forged-') === true ? [] : [`${name}: forged`]
    const other = theirs.get(name)
    // There, a client may choose the value.
    if (other?.includes('forged-') === true) return []
    return name.startsWith('x-set-') && other !== value ? [`${name}: ${value}, and not ${other}`] : []
  })
}
