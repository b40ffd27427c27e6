import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { startStrictHttp2Upstream } from '../support/strict-http2-upstream.ts'
import { startStrictUpstream, type StrictUpstream } from '../support/strict-upstream.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

/**
 * A gateway with its own application, so that the application sees the requests of one case only.
 */
export interface Lane {
  readonly world: World
  readonly upstream: StrictUpstream
  readonly port: number
  /** `HOST:PORT` of the gateway. */
  readonly host: string
  /** The session cookie of a signed-in person. */
  readonly cookie: string
}

/** Forwarded without a sign-in, with the identity of a signed-in person. */
export const openPath = '/public/x'
/** Forwarded after a sign-in only. */
export const protectedPath = '/admin/secret'
/** Only the gateway may send these to the application. */
export const identityNames = ['X-User-Sub', 'X-User-Name', 'X-User-Email', 'X-User-Groups']

const identityHeaders = `X-User-Sub: sub
      X-User-Name: "{given_name} {family_name}"
      X-User-Email: email
      X-User-Groups: { claim: fields.groups, join: ",", encode: percent }`

/** What the application of a lane speaks. */
export type Protocol = 'HTTP/1.1' | 'HTTP/2'
export const protocols = ['HTTP/1.1', 'HTTP/2'] as const

export interface LaneOptions extends Omit<WorldOptions, 'upstreamSettings'> {
  readonly protocol?: Protocol
  /** YAML. */
  readonly rules?: string
}

export async function startLane(t: TestContext, options: LaneOptions = {}): Promise<Lane> {
  const { protocol = 'HTTP/1.1', rules = '{ path: /public/*, access: optional }', ...worldOptions } = options
  const isHttp2 = protocol === 'HTTP/2'
  const upstream = await (isHttp2 ? startStrictHttp2Upstream(t) : startStrictUpstream(t))
  const world = await startWorld(t, {
    upstream: upstream.url,
    headers: identityHeaders,
    upstreamSettings: `${isHttp2 ? 'protocol: h2c\n    ' : ''}rules: [${rules}]`,
    ...worldOptions,
  })
  const jane = world.browser()
  const visit = await jane.get(`${world.url}${protectedPath}`)
  if (visit.status !== 200) throw new Error(`nobody can sign in: ${visit.status} ${visit.body}`)
  upstream.forget()
  const { port, host } = new URL(world.url)
  return { world, upstream, port: Number(port), host, cookie: jane.cookieHeader }
}

/**
 * Runs each case alone in a lane, several lanes at once. Reports how many cases there are and how
 * many passed.
 */
export async function runCases<Case>(
  t: TestContext,
  cases: readonly Case[],
  nameOf: (aCase: Case) => string,
  run: (aCase: Case, lane: Lane, t: TestContext) => Promise<void>,
  options: LaneOptions & { readonly lanes?: number } = {},
): Promise<void> {
  const { lanes = 4, ...laneOptions } = options
  const free: Lane[] = []
  while (free.length < lanes) free.push(await startLane(t, laneOptions))
  const waiting: ((lane: Lane) => void)[] = []
  const take = async () => free.pop() ?? (await new Promise<Lane>((resolve) => waiting.push(resolve)))
  const giveBack = (lane: Lane) => {
    const next = waiting.shift()
    if (next === undefined) free.push(lane)
    else next(lane)
  }
  let passed = 0
  await Promise.all(
    cases.map(async (aCase) => {
      const lane = await take()
      await t.test(nameOf(aCase), async (t) => {
        lane.upstream.forget()
        await run(aCase, lane, t)
        passed += 1
      })
      giveBack(lane)
    }),
  )
  t.diagnostic(`cases ${cases.length}, passed ${passed}`)
}

export function readCases<Corpus>(name: string): Corpus {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8')) as Corpus
}

/** The name of a case, with the fault that must never happen again. */
export function caseName({ name, regression }: { readonly name: string; readonly regression?: string }): string {
  return regression === undefined ? name : `${name}: ${regression.replaceAll('-', ' ')}`
}

/** Expands `{N times:TEXT}`. `#` in the text is the counter. */
export function repeated(text: string): string {
  return text.replaceAll(/\{(\d+) times:([^{}]+)\}/g, (_, count: string, part: string) =>
    Array.from({ length: Number(count) }, (_, index) => part.replaceAll('#', String(index))).join(''),
  )
}

/** Whether some application could read this header name as an identity header. */
export function isIdentityName(name: string): boolean {
  return folded.has(fold(name))
}

/**
 * The name as the most lenient application reads it: all characters except for letters and digits
 * are equal.
 */
export function fold(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z\d]+/g, '-')
    .replaceAll(/^-|-$/g, '')
}

const folded = new Set(identityNames.map(fold))
