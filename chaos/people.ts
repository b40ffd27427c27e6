// The people of a chaos run, and those who end their sessions.
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type Random, seeded } from '../test/support/random.ts'
import { Browser, codeOf, errorOf, patienceMs, type Site } from './browser.ts'
import { type Ending, now } from './history.ts'
import { applications } from './parties.ts'
import type { ChaosProvider } from './provider.ts'

/** What a person does next, by weight. */
const actions = {
  page: 40,
  script: 30,
  download: 8,
  upload: 8,
  form: 15,
  stream: 3,
  websocket: 3,
  signOut: 2,
  signInAgain: 2,
  copy: 5,
  copyWithoutKey: 5,
  rest: 2,
} as const
/** In ms: between two actions, when a sign-in has failed, and how long a person rests. */
const pauses = { action: [80, 700], retry: 500, rest: [3_000, 12_000], stream: [3_000, 60_000] } as const
const [browsersEach, tabsEach] = [2, 2]

/**
 * When copies of the cookies of an ended session are tried, in ms after its end. When only the
 * provider knows of the end, a replica learns of it from UserInfo, or from the refresh that a
 * request needs when the access token has expired after 20 s.
 */
const copiesAfterMs = [0, 2_500, 5_000, 7_500, 10_000, 14_000, 20_000, 24_000]

export interface Crowd {
  /** Tries copies of the cookies of ended sessions, again and again. */
  useCopies(order: Pick<Ending, 'sid' | 'sub'>): void
  /** Lets all people complete what they do, and sign out. */
  leave(): Promise<void>
}

/** Lets people use the site until they stop. */
export function gather(
  site: Site,
  people: readonly string[],
  seed: number,
  addressOf: (name: string) => string,
): Crowd {
  let isOver = false
  const browsers: Browser[] = []
  const loops: Promise<void>[] = []
  for (const person of people)
    for (let n = 1; n <= browsersEach; n += 1) {
      const at = browsers.length
      const name = `${person}-${n}`
      const parts = { name, person, site, localAddress: addressOf(name), hasKeys: n === browsersEach }
      const browser = new Browser({ ...parts, random: seeded(seed * 1_000 + at) })
      browsers.push(browser)
      const isSigningIn = { now: false }
      for (let tab = 0; tab < tabsEach; tab += 1)
        loops.push(useTab(browser, seeded(seed * 1_000_000 + at * 10 + tab), isSigningIn, () => isOver))
    }
  // Each is tried when it is due, also while earlier ones have no response.
  const copyAfter = async (after: number, order: Pick<Ending, 'sid' | 'sub'>) => {
    await pause(after, undefined, { ref: false })
    if (!isOver) loops.push(...browsers.map((browser) => browser.useCopies(applications[0], order)))
  }
  return {
    useCopies: (order) => copiesAfterMs.forEach((after) => void copyAfter(after, order)),
    leave: async () => {
      isOver = true
      for (const browser of browsers) browser.closeChannels()
      await Promise.all(loops)
      await Promise.all(browsers.map(leaveForGood))
    },
  }
}

async function leaveForGood(browser: Browser): Promise<void> {
  await browser.signOut()
  await browser.close()
}

async function useTab(
  browser: Browser,
  random: Random,
  signingIn: { now: boolean },
  isOver: () => boolean,
): Promise<void> {
  let open: Promise<void> | undefined
  while (!isOver()) {
    await pause(random.between(...pauses.action))
    if (browser.session === undefined) {
      // Most people wait for the tab in which they sign in; some click in the other one too.
      if (signingIn.now && !random.chance(0.1)) continue
      signingIn.now = true
      const leadsTo = await browser.signIn()
      signingIn.now = false
      if (leadsTo === undefined) await pause(pauses.retry)
      continue
    }
    const wanted = random.weighted(actions)
    // People whose browser has keys stay signed in for longer.
    const stays = browser.hasKeys && (wanted === 'signOut' || wanted === 'signInAgain') && random.chance(0.8)
    const action = stays ? 'copyWithoutKey' : wanted
    const application = random.pick(applications)
    if (action === 'rest') await pause(random.between(...pauses.rest))
    else if (action === 'signOut') await browser.signOut()
    else if (action === 'signInAgain') await browser.signIn({ again: true })
    else if (action === 'copy') await browser.useCopy(application)
    else if (action === 'copyWithoutKey') await browser.useWithoutKey(application)
    else if (action === 'stream' || action === 'websocket')
      open ??= browser
        .keepOpen(action === 'websocket' ? 'live' : application, action, random.between(...pauses.stream))
        .finally(() => (open = undefined))
    else {
      const { code } = await browser.use(application, action)
      if (code === 'ERR_UNAUTHENTICATED') await browser.signIn()
    }
  }
  await open
}

/** In ms: until a provider or an administrator gives up an order, and between two attempts. */
const [deliveryMs, orderPauseMs] = [60_000, 500]
/** After its confirmation, a Logout Token is repeated, in ms. */
const repeatedTokenMs = 3_000

export interface EndingParts {
  readonly site: Site
  readonly provider: ChaosProvider
  readonly adminOf: (replica: string) => string
  readonly adminToken: string
  readonly random: Random
  /** Whether something is wrong between a replica and the store. */
  readonly isCut: (replica: string) => boolean
  /** An order was confirmed, or a session has ended at the provider. */
  readonly onEnded: Crowd['useCopies']
}

/** Where an order goes: often to a replica that may not be able to carry it out. */
function orderTarget({ site, random, isCut }: EndingParts): Site['replicas'][number] {
  const cut = site.replicas.filter(({ name }) => isCut(name))
  return random.pick(cut.length > 0 && random.chance(0.5) ? cut : site.replicas)
}

/**
 * The provider ends a session: it sends a Logout Token or a security event to any replica until one
 * confirms it.
 */
export async function logOutAtProvider(parts: EndingParts): Promise<void> {
  const { site, provider, random, onEnded } = parts
  const sessions = provider.sessions()
  if (sessions.length === 0) return
  const { sid, sub } = random.pick(sessions)
  // Some providers name the person only.
  const isOfPerson = random.chance(0.3)
  const target = isOfPerson ? { sub } : { sid }
  const by = random.chance(0.4) ? 'signal' : 'logout-token'
  const about = { sub, ...target }
  const event = by === 'signal' ? await provider.securityEvent(about) : undefined
  const id = site.id('e')
  const begin = now()
  for (const one of sessions) if (isOfPerson ? one.sub === sub : one.sid === sid) provider.expireSession(one.sid)
  while (now() - begin < deliveryMs) {
    const token = event ?? (await provider.logoutToken(about))
    const order = { id, by, ...target } as const
    if (await deliver(parts, token, order)) {
      onEnded(target)
      if (random.chance(0.5)) await repeatToken(parts, token, order)
      return
    }
    await pause(orderPauseMs)
  }
}

type TokenOrder = Pick<Ending, 'id' | 'by' | 'sid' | 'sub' | 'replayed'>

/** Sends a Logout Token or an event to a replica, and returns whether it was confirmed. */
async function deliver(parts: EndingParts, token: string, order: TokenOrder): Promise<boolean> {
  const { site } = parts
  const { name: replica, url } = orderTarget(parts)
  const isSignal = order.by === 'signal'
  const type = isSignal ? 'application/secevent+jwt' : 'application/x-www-form-urlencoded'
  const path = isSignal ? 'security-events' : 'backchannel-logout'
  const { confirmed } = await send(site, { ...order, replica }, `${url}/.gatehouse/${path}`, {
    body: isSignal ? token : new URLSearchParams({ logout_token: token }).toString(),
    headers: { host: new URL(site.url).host, 'content-type': type },
  })
  return confirmed
}

/** Delivers a token once more, when its person may have signed in again: it ends nothing. */
async function repeatToken(parts: EndingParts, token: string, { id: _, ...order }: TokenOrder): Promise<void> {
  await pause(repeatedTokenMs)
  await deliver(parts, token, { ...order, id: parts.site.id('e'), replayed: true })
}

/** The provider ends a session without a notice. */
export function expireAtProvider({ site, provider, random, onEnded }: EndingParts): void {
  const sessions = provider.sessions()
  if (sessions.length === 0) return
  const { sid } = random.pick(sessions)
  const begin = now()
  provider.expireSession(sid)
  site.record({ type: 'ending', id: site.id('e'), by: 'provider', sid, begin, end: now(), confirmed: false })
  onEnded({ sid })
}

/**
 * An administrator ends all sessions of a person, at any replica, and repeats it until it works.
 */
export async function endAsAdministrator(parts: EndingParts): Promise<void> {
  const { site, provider, random, adminOf, adminToken, onEnded } = parts
  const sessions = provider.sessions()
  if (sessions.length === 0) return
  const { sub } = random.pick(sessions)
  const id = site.id('e')
  const begin = now()
  while (now() - begin < deliveryMs) {
    const replica = orderTarget(parts).name
    const { confirmed } = await send(
      site,
      { id, by: 'administrator', sub, replica },
      `${adminOf(replica)}/sessions/end`,
      {
        body: JSON.stringify({ sub }),
        headers: {
          'content-type': 'application/json',
          authorization: `Basic ${Buffer.from(`:${adminToken}`).toString('base64')}`,
        },
      },
    )
    if (confirmed) return onEnded({ sub })
    await pause(orderPauseMs)
  }
}

/** No certificate is for the address of a replica. */
const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })

/** Posts an order to end sessions, and records its outcome. */
async function send(
  site: Site,
  order: Pick<Ending, 'id' | 'by' | 'sid' | 'sub' | 'replica' | 'replayed'>,
  url: string,
  init: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
): Promise<Ending> {
  const begin = now()
  const base = { type: 'ending', ...order, begin } as const
  let ending: Ending
  try {
    const headers = { 'x-request-id': order.id, ...init.headers }
    const response = await request(url, {
      ...{ body: init.body, headers, method: 'POST', headersTimeout: patienceMs, dispatcher },
    })
    const { statusCode: status } = response
    const text = await response.body.text()
    // 503 of the administration API has no code. It means that the store failed.
    const other = status === 503 && order.by === 'administrator' ? 'ERR_STORE_UNAVAILABLE' : undefined
    const confirmed = status === (order.by === 'signal' ? 202 : 200)
    const code = other ?? (confirmed ? undefined : codeOf(url, status, response.headers, text))
    ending = { ...base, end: now(), status, confirmed, ...(code !== undefined && { code }) }
  } catch (error) {
    ending = { ...base, end: now(), error: errorOf(error), confirmed: false }
  }
  site.record(ending)
  return ending
}
