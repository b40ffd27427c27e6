// A running contender with signed-in people.
import { readFileSync } from 'node:fs'
import { Agent, request, setGlobalDispatcher } from 'undici'
import { Browser } from '../test/support/browser.ts'
import { freePort } from '../test/support/free-port.ts'
import type { Bed } from './bed.ts'
import type { Contender, Setting } from './contenders/contender.ts'
import type { Visitor } from './load/order.ts'
import { cookies, requestFields, responseFields } from './load/typical-fields.ts'
import { claimValues } from './people.ts'

export interface Stand {
  readonly contender: Contender
  readonly title: string
  readonly pid: number
  readonly port: number
  readonly tls: boolean
  readonly visitors: readonly Visitor[]
  /**
   * Stops the contender. Resolves to the share of access log lines that were lost; 0 without an
   * access log.
   */
  stop(): Promise<number>
}

export interface StandOptions extends Partial<Omit<Setting, 'port'>> {
  /** Its name in the report. Absent: the name of the contender. */
  readonly title?: string
  /** How many people sign in. Absent: one. */
  readonly people?: number
  /** A setting of the contender changes header fields, so they are not compared. Absent: false. */
  readonly changesFields?: boolean
}

/** The browsers that sign in trust this authority. The measured clients accept any certificate. */
export function trustOnly({ ca }: { readonly ca: string }): void {
  setGlobalDispatcher(new Agent({ connect: { ca: readFileSync(ca) } }))
}

/** Starts a contender on the first processor and signs people in with the real sign-in. */
export async function stand(bed: Bed, contender: Contender, options: StandOptions = {}): Promise<Stand> {
  const { title = contender.title, people = 1, changesFields = false, ...given } = options
  const setting = settingOf(await freePort(), given)
  const { port } = setting
  const running = await contender.start(bed, setting)
  const origin = `${setting.tls ? 'https' : 'http'}://127.0.0.1:${port}`
  const nobody: readonly Visitor[] = [{ cookie: '' }]
  const signingIn = contender.signsIn ? signInMany(origin, people) : Promise.resolve(nobody)
  const visitors = await signingIn
    .then(async (all) => {
      if (!changesFields) await proveFields(origin, all[0]?.cookie ?? '')
      return all
    })
    .catch(async (error: unknown) => {
      await running.stop()
      throw error
    })
  let stopping: Promise<number> | undefined
  const end = async () => {
    await running.stop()
    const [lines, requests] = [running.linesWritten?.(), bed.served(port)]
    return lines === undefined || requests === 0 ? 0 : Math.max(0, 1 - lines / requests)
  }
  const stop = () => (stopping ??= end())
  return { contender, title, pid: running.pid, port, tls: setting.tls !== undefined, visitors, stop }
}

/**
 * The default setting, overridden by `given`: one worker on the first processor, no TLS, and the
 * Node.js version that runs the bench.
 */
export function settingOf(port: number, given: Partial<Setting>): Setting {
  return { cpus: '0', workers: 1, tls: undefined, node: process.execPath, nodeOptions: [], ...given, port }
}

/** @throws {Error} when a sign-in fails, or the identity headers are not checked */
async function signInMany(origin: string, people: number): Promise<readonly Visitor[]> {
  const visitors: Visitor[] = []
  const next = async (): Promise<void> => {
    while (visitors.length < people) {
      const slot = visitors.push({ cookie: '' }) - 1
      visitors[slot] = await signIn(origin)
    }
  }
  await Promise.all([next(), next(), next(), next()])
  const [{ cookie, person = NaN } = { cookie: '' }] = visitors
  await proveCheck(origin, cookie, person)
  return visitors
}

/**
 * @throws {Error} when a request with the identity of another person is served, because the
 * responses would not be checked then
 */
async function proveCheck(origin: string, cookie: string, person: number): Promise<void> {
  const response = await request(`${origin}/bytes/1`, { headers: { cookie, 'x-bench-person': String(person + 1) } })
  await response.body.dump()
  if (response.statusCode !== 417)
    throw new Error(`${origin}: identity headers are not checked: ${response.statusCode}`)
}

/**
 * @throws {Error} when the contender loses header fields of the request or of the response, which
 * would make it cheaper
 */
async function proveFields(origin: string, cookie: string): Promise<void> {
  const sent = [cookie, ...cookies].filter(Boolean).join('; ')
  const response = await request(`${origin}/typical/1`, { headers: { ...requestFields, cookie: sent } })
  const text = await response.body.text()
  if (response.statusCode !== 200) throw new Error(`${origin}: ${response.statusCode} ${text}`)
  // A gateway may replace these.
  const { server: _, 'cache-control': __, vary: ___, ...kept } = responseFields
  for (const [name, value] of Object.entries(kept))
    if (response.headers[name] !== value) throw new Error(`${origin}: the response has lost ${name}`)
}

/**
 * Signs the next person in, and checks that the upstream receives the identity.
 * @throws {Error} when the sign-in does not end at the upstream, or a claim is missing there
 */
export async function signIn(origin: string): Promise<Visitor> {
  const browser = new Browser('nobody')
  const visit = await browser.get(`${origin}/whoami`)
  const person = Number(/: person-(\d+)\r$/m.exec(visit.body)?.[1])
  if (visit.status !== 200 || Number.isNaN(person))
    throw new Error(`signing in ended at ${new URL(visit.url).pathname} with ${visit.status}: ${textOf(visit.body)}`)
  const missing = claimValues(person).filter((value) => !visit.body.includes(`: ${value}\r\n`))
  if (missing.length > 0) throw new Error(`the upstream was not told ${missing.join(', ')}:\n${visit.body}`)
  return { cookie: browser.cookieHeader, person }
}

/** The visible text of a page, shortened. */
function textOf(page: string): string {
  const words = page.replaceAll(/<style>.*?<\/style>|<[^>]*>/gs, ' ').replaceAll(/\s+/g, ' ')
  return words.trim().slice(0, 300)
}
