// Programs that call an application with access tokens of the provider, in place of a session.
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type Random, seeded } from '../test/support/random.ts'
import { codeOf, errorOf, patienceMs } from './browser.ts'
import { now, type Request, type Token } from './history.ts'
import type { World } from './world.ts'

const callers = 3
/** Between two calls of a program, between two new tokens, and how long a token lives, in ms. */
const [pauses, newTokenEveryMs, lifetimes] = [[100, 400], 4_000, [5_000, 60_000]] as const
/** A program keeps its last tokens, and also uses those that may be over. */
const kept = 12

interface Held {
  readonly token: Token
  readonly text: string
}

/** Lets programs call until the returned function is called, which resolves when they have. */
export function startCallers(world: World, seed: number): () => Promise<void> {
  let isOver = false
  const programs = Array.from({ length: callers }, (_, n) =>
    runProgram(world, `caller-${n + 1}`, seeded(seed * 100 + n), () => isOver),
  )
  return async () => {
    isOver = true
    await Promise.all(programs)
  }
}

async function runProgram(world: World, name: string, random: Random, isOver: () => boolean): Promise<void> {
  const { site, network } = world
  const dispatcher = new Agent({
    ...{ localAddress: network.host(`browser ${name}`), headersTimeout: patienceMs, bodyTimeout: patienceMs },
    connect: { timeout: 5_000, rejectUnauthorized: false },
  })
  const held: Held[] = []
  for (let issuedAt = -Infinity; !isOver(); await pause(random.between(...pauses))) {
    if (now() - issuedAt > newTokenEveryMs) {
      const issued = await issueToken(world, random)
      if (issued !== undefined) held.unshift(issued)
      held.splice(kept)
      issuedAt = now()
    }
    const [newest] = held
    if (newest !== undefined) await call(world, name, random.chance(0.5) ? newest : random.pick(held))
  }
  await dispatcher.close()

  async function call({ replicas }: World, browser: string, { token, text }: Held): Promise<void> {
    const id = site.id('r')
    const { name: replica, url } = random.pick(replicas)
    const who = { type: 'request', id, kind: 'call', person: token.sub, browser, token: token.id } as const
    const base = { ...who, replica, application: 'api', begin: now() }
    try {
      const host = new URL(site.url).host
      const { statusCode, headers, body } = await request(`${url}/api/call`, {
        dispatcher,
        headers: {
          host,
          accept: 'application/json',
          authorization: `Bearer ${text}`,
          'x-request-id': id,
          'x-chaos-request': id,
        },
      })
      const content = await body.text()
      const code = codeOf(`${url}/api/call`, statusCode, headers, content)
      const isServed = headers['x-application'] !== undefined
      const echo = isServed ? (JSON.parse(content) as Pick<Request, 'identity' | 'echo'>) : {}
      site.record({ ...base, ...echo, end: now(), status: statusCode, ...(code !== undefined && { code }) })
    } catch (error) {
      site.record({ ...base, end: now(), error: errorOf(error) })
    }
  }
}

async function issueToken({ provider, site }: World, random: Random): Promise<Held | undefined> {
  const sessions = provider.sessions()
  if (sessions.length === 0) return undefined
  const { sub, sid } = random.pick(sessions)
  const lifetimeMs = random.between(...lifetimes)
  const at = now()
  const text = await provider.accessToken({ sub, sid }, lifetimeMs)
  const token = { type: 'token', id: site.id('t'), at, expires: at + lifetimeMs, sub, sid } as const
  site.record(token)
  return { token, text }
}
