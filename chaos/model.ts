// A gateway in memory that behaves well, for the tests of the checker: it writes the history of a
// run in which each operation takes effect at one moment between its begin and its end.
import { type Random, seeded } from '../test/support/random.ts'
import type { Ending, Fault, HistoryEvent, Identity, Part, Request, Run, SignIn, Stream, Token } from './history.ts'

interface Session {
  readonly signIn: SignIn
  readonly identity: Identity
  isLive: boolean
  /** The replicas that have it in memory. */
  readonly near: Set<string>
  token: number
  refreshAt: number
  /** When it was bound to a key of the browser. */
  boundAt: number
}

/** An access token of a program. */
interface Held {
  readonly token: Token
  isOver: boolean
}

interface Browser {
  readonly person: string
  readonly name: string
  session?: Session
  /** The session at the provider, which several sign-ins share. */
  sid?: string
}

interface OpenStream {
  readonly session: Session
  readonly stream: Omit<Stream, 'end' | 'reason'>
}

/** The other end of a connection of a replica. */
interface Toward {
  readonly application?: string
  /** Absent: the provider, which has no name at a replica. */
  readonly browser?: string
}

/** Where a fault is in the way of an operation, or nowhere. */
type Way = Fault | undefined

const replicas = ['a', 'b', 'c', 'd']
const persons = ['ada', 'bea', 'cem']
const applications = ['orders', 'files']

/** The history of a run without a fault of the gateway. */
export function modelHistory(seed: number, grace = 0): HistoryEvent[] {
  return new Model(seed, grace).history()
}

class Model {
  readonly #events: HistoryEvent[] = []
  readonly #random: Random
  readonly #browsers = persons.flatMap((person): Browser[] => [
    { person, name: `${person}-1` },
    { person, name: `${person}-2` },
  ])
  readonly #sessions: Session[] = []
  readonly #faults: Fault[] = []
  readonly #retries: { sid: string; at: number }[] = []
  #held: Held[] = []
  #streams: OpenStream[] = []
  readonly #run: Run
  #now = 0
  #names = 0

  constructor(seed: number, grace: number) {
    this.#random = seeded(seed)
    const timeouts = { idleTimeout: 900_000, absoluteTimeout: 3_600_000, accessTokenLifetime: 5_000 }
    this.#run = { type: 'run', at: 0, seed, replicas, persons, grace, ...timeouts }
  }

  history(): HistoryEvent[] {
    this.#events.push(this.#run)
    this.#sample()
    this.#planFaults()
    const healed = Math.max(...this.#faults.map(({ end }) => end))
    while (this.#now < healed + 8_000) this.#step()
    this.#closeStreams()
    this.#now = healed + 11_000
    for (const { name } of this.#browsers) this.#proveLife(name)
    while (this.#streams.length > 0) this.#step()
    this.#sample()
    this.#events.push({ type: 'end', at: this.#now })
    return this.#events
  }

  #name(kind: string): string {
    this.#names += 1
    return `${kind}${this.#names}`
  }

  #planFaults(): void {
    const kinds = [
      ...(['kill', 'suspend', 'partition', 'failover', 'provider', 'application', 'link', 'reload'] as const),
      'keys-withdrawn' as const,
    ]
    for (let begin = 20_000, left = [...kinds]; left.length > 0; begin += this.#random.between(4_000, 8_000)) {
      const kind = this.#random.pick(left)
      left = left.filter((other) => other !== kind)
      const replica = { replicas: [this.#random.pick(replicas)] }
      const concerned = {
        kill: { part: 'replica', ...replica },
        suspend: { part: 'replica', ...replica },
        partition: { part: 'store', ...replica },
        failover: { part: 'store', losesWrites: true },
        provider: { part: 'provider' },
        application: { part: 'application', applications: [this.#random.pick(applications)] },
        link: { part: 'clients', ...replica },
        reload: replica,
        'keys-withdrawn': { part: 'replica', replicas, endsSessions: true },
      } as const
      const fault = {
        id: this.#name('f'),
        kind,
        begin,
        end: begin + this.#random.between(500, 4_000),
        ...concerned[kind],
      }
      this.#faults.push({ type: 'fault', ...fault })
    }
    this.#events.push(...this.#faults)
  }

  /** The fault of this part that is active now. The proxies see that it is met. */
  #fault(part: Part, replica: string, { application, browser }: Toward = {}): Way {
    const fault = this.#faults.find(
      (fault) =>
        fault.part === part &&
        fault.begin <= this.#now &&
        fault.end >= this.#now &&
        (fault.replicas ?? [replica]).includes(replica) &&
        (application === undefined || (fault.applications ?? [application]).includes(application)),
    )
    if (fault === undefined || part === 'replica') return fault
    const client = browser === undefined ? '' : `browser ${browser}`
    const [from, to] = part === 'clients' ? [client, replica] : [replica, application ?? part]
    this.#events.push({ type: 'touch', from, to, part, how: 'reset', begin: this.#now, end: this.#now })
    return fault
  }

  #step(): void {
    this.#now += this.#random.between(10, 70)
    this.#loseWrites()
    this.#retryLogoutTokens()
    this.#closeStreams()
    const browser = this.#random.pick(this.#browsers)
    const replica = this.#random.pick(replicas)
    const { session } = browser
    const action = this.#random.weighted({
      signIn: 1,
      signOut: 1,
      logoutToken: 1,
      issue: 1,
      call: 8,
      copy: 3,
      request: 85,
    })
    if (action === 'issue') this.#issueToken()
    else if (action === 'call') this.#call(replica)
    else if (session === undefined || action === 'signIn') this.#signIn(browser, replica)
    else if (action === 'signOut') this.#signOut(browser, replica)
    else if (action === 'logoutToken' && session.isLive) this.#logoutToken(session.identity.sid, replica)
    else if (action === 'copy' && session.boundAt < Infinity) this.#request(browser, 'page', replica, true)
    else this.#request(browser, this.#random.pick(['page', 'page', 'download', 'form', 'upload', 'stream']), replica)
  }

  /** The moments before and after the effect of an operation, which is now. */
  #span(): { begin: number; end: number } {
    return { begin: this.#now - this.#random.between(1, 30), end: this.#now + this.#random.between(1, 30) }
  }

  /** Why an operation does not reach a replica, or its response does not reach the client. */
  #connectionError(replica: string, browser?: string): { status?: never; error: string } | undefined {
    const fault = this.#fault('replica', replica) ?? this.#fault('clients', replica, browser ? { browser } : {})
    return fault && { error: fault.kind }
  }

  #loseWrites(): void {
    for (const fault of this.#faults)
      if (fault.losesWrites && fault.begin <= this.#now && fault.begin > this.#now - 100)
        for (const session of this.#sessions)
          if (session.signIn.end > fault.begin - 1_000 && this.#random.chance(0.5)) session.isLive = false
    for (const fault of this.#faults)
      if (fault.endsSessions && fault.end <= this.#now && fault.end > this.#now - 100)
        for (const session of this.#sessions) if (session.signIn.begin < fault.end) session.isLive = false
  }

  #signIn(browser: Browser, replica: string): void {
    const { person, name, session } = browser
    const error = this.#connectionError(replica, name)
    const store = this.#fault('store', replica) && { status: 503, code: 'ERR_STORE_UNAVAILABLE' }
    const provider = this.#fault('provider', replica) && { status: 503, code: 'ERR_PROVIDER_UNAVAILABLE' }
    const id = this.#name('s')
    const replaces = session && { replaces: session.signIn.id }
    const span = this.#span()
    const common = {
      type: 'sign-in',
      id,
      person,
      browser: name,
      replica,
      begin: span.begin - 100,
      end: span.end,
    } as const
    const failed = error ?? store ?? provider
    if (failed !== undefined) return void this.#events.push({ ...common, ...failed, ...replaces, signedIn: false })
    browser.sid ??= this.#name('sid')
    const identity = { sub: person, sid: browser.sid }
    const signIn: SignIn = { ...common, status: 302, ...replaces, signedIn: true, identity, grant: id }
    if (session !== undefined) this.#end(session)
    const fresh = { isLive: true, near: new Set<string>(), token: 0, refreshAt: this.#now + 5_000 }
    browser.session = { signIn, identity, ...fresh, boundAt: Infinity }
    this.#sessions.push(browser.session)
    this.#events.push(signIn)
    // The second browser of each person has keys.
    if (name.endsWith('-2')) this.#bind(browser.session, replica)
  }

  #bind(session: Session, replica: string): void {
    const { id, person, browser } = session.signIn
    this.#now += 40
    const error = this.#connectionError(replica, browser)
    const store = this.#fault('store', replica) && { status: 503, code: 'ERR_STORE_UNAVAILABLE' }
    const failed = error ?? store
    const proof = { type: 'proof', id: this.#name('p'), purpose: 'registration', person, browser, session: id } as const
    const outcome = failed ?? { status: 200 }
    this.#events.push({ ...proof, replica, ...this.#span(), ...outcome, proved: failed === undefined })
    if (failed === undefined) session.boundAt = this.#now
  }

  #issueToken(): void {
    const session = this.#random.pick(this.#browsers).session
    if (session?.isLive !== true) return
    const expires = this.#now + this.#random.between(5_000, 40_000)
    const token = { type: 'token', id: this.#name('t'), at: this.#now, expires, ...session.identity } as const
    this.#events.push(token)
    this.#held = [{ token, isOver: false }, ...this.#held].slice(0, 12)
  }

  /** A program calls with an access token. Each replica that heard of its end refuses it. */
  #call(replica: string): void {
    if (this.#held.length === 0) return
    const { token, isOver } = this.#random.pick(this.#held)
    const id = this.#name('r')
    const browser = 'caller-1'
    const who = { type: 'request', id, kind: 'call', person: token.sub, browser, token: token.id } as const
    const call = { ...who, replica, application: 'api', ...this.#span() }
    const error = this.#connectionError(replica, browser)
    if (error !== undefined) return void this.#events.push({ ...call, ...error })
    if (isOver || this.#now > token.expires)
      return void this.#events.push({ ...call, status: 401, code: 'ERR_TOKEN_INVALID' })
    const identity = { sub: token.sub, sid: token.sid }
    const receipt = { type: 'receipt', at: this.#now, request: id, application: 'api', identity } as const
    this.#events.push({ ...receipt, exchanged: { sub: token.sub, aud: 'api' } })
    this.#events.push({ ...call, status: 200, identity, echo: id })
  }

  /** Each replica that can reach the store drops its copy. */
  #end(session: Session): void {
    session.isLive = false
    for (const replica of replicas) if (!this.#fault('store', replica)) session.near.delete(replica)
  }

  #signOut(browser: Browser, replica: string): void {
    const session = browser.session as Session
    const confirmed = this.#order({ by: 'sign-out', session: session.signIn.id }, [session], replica, browser.name)
    if (!confirmed) return
    delete browser.session
    delete browser.sid
  }

  #logoutToken(sid: string, replica: string): void {
    for (const browser of this.#browsers) if (browser.sid === sid) delete browser.sid
    const sessions = this.#sessions.filter(({ identity }) => identity.sid === sid)
    const by = this.#random.chance(0.4) ? 'signal' : 'logout-token'
    const isDone = this.#order({ by, sid }, sessions, replica)
    if (isDone) for (const held of this.#held) held.isOver ||= held.token.sid === sid
    if (!isDone) this.#retries.push({ sid, at: this.#now + 2_000 })
  }

  #retryLogoutTokens(): void {
    const due = this.#retries.findIndex(({ at }) => at < this.#now)
    const [retry] = due < 0 ? [] : this.#retries.splice(due, 1)
    if (retry !== undefined) this.#logoutToken(retry.sid, this.#random.pick(replicas))
  }

  /** Returns whether the order was confirmed. A replica without the store obeys it alone. */
  #order(
    order: Pick<Ending, 'by' | 'session' | 'sid'>,
    sessions: readonly Session[],
    replica: string,
    browser?: string,
  ): boolean {
    const error = this.#connectionError(replica, browser)
    const store = this.#fault('store', replica) && { status: 503, code: 'ERR_STORE_UNAVAILABLE' }
    const failed = error ?? store
    if (failed === undefined) for (const session of sessions) this.#end(session)
    else if (error === undefined) for (const session of sessions) session.near.delete(replica)
    const outcome = failed ?? { status: 200 }
    const confirmed = failed === undefined
    this.#events.push({
      type: 'ending',
      id: this.#name('e'),
      ...order,
      replica,
      ...this.#span(),
      ...outcome,
      confirmed,
    })
    return confirmed
  }

  /** @param isCopy without the key of the browser */
  #request(browser: Browser, kind: Request['kind'], replica: string, isCopy = false): void {
    const session = browser.session as Session
    const application = this.#random.pick(applications)
    const id = this.#name('r')
    const content = kind === 'form' || kind === 'upload' ? { digest: `sha-${id}` } : {}
    const sent = { ...content, ...(kind === 'form' ? { form: `form-${id}` } : {}) }
    const { person, name } = browser
    const common = {
      type: 'request',
      id,
      kind,
      person,
      browser: name,
      session: session.signIn.id,
      ...this.#span(),
      ...(isCopy && { unproved: true as const }),
    } as const
    const finish = (outcome: Pick<Request, 'status' | 'code' | 'error' | 'identity' | 'echo'>) =>
      void this.#events.push({ ...common, ...sent, replica, application, ...outcome })
    const link = this.#fault('clients', replica, { browser: name })
    const process = this.#fault('replica', replica)
    if (process !== undefined || (link && this.#random.chance(0.5)))
      return finish({ error: (process ?? link)?.kind ?? '' })
    const refused = this.#admission(session, replica)
    if (refused !== undefined) return finish(refused)
    if (isCopy && this.#now > session.boundAt + 30_000) return finish({ status: 401, code: 'ERR_UNAUTHENTICATED' })
    const fault = this.#fault('application', replica, { application })
    if (fault && this.#random.chance(0.5)) return finish({ status: 502, code: 'ERR_UPSTREAM_UNREACHABLE' })
    const { identity } = session
    const share = { download: 0.15, form: 0.06 }[kind as string] ?? 0
    const failed = this.#random.chance(share) ? { failed: true as const } : {}
    this.#events.push({ type: 'receipt', at: this.#now, request: id, application, identity, ...sent, ...failed })
    if (failed.failed && kind === 'download') return finish({ error: 'ECONNRESET' })
    if (failed.failed) return finish({ status: 502, code: 'ERR_UPSTREAM_UNREACHABLE' })
    if (fault) return finish({ status: 502, code: 'ERR_UPSTREAM_RESPONSE' })
    if (link) return finish({ error: link.kind })
    finish({ status: 200, identity, echo: id })
    if (kind !== 'stream') return
    const stream = {
      type: 'stream',
      request: id,
      session: session.signIn.id,
      replica,
      application,
      begin: this.#now,
    } as const
    this.#streams.push({ session, stream })
  }

  /** Why a replica refuses a request of a session. */
  #admission(session: Session, replica: string): { status: number; code: string } | undefined {
    const away = this.#fault('store', replica)
    if (away !== undefined) {
      const isServed = session.near.has(replica) && this.#now < away.begin + this.#run.grace
      return isServed ? undefined : { status: 503, code: 'ERR_STORE_UNAVAILABLE' }
    }
    if (!session.isLive) {
      session.near.delete(replica)
      return { status: 401, code: 'ERR_UNAUTHENTICATED' }
    }
    session.near.add(replica)
    if (this.#now < session.refreshAt) return undefined
    if (this.#fault('provider', replica)) return { status: 503, code: 'ERR_PROVIDER_UNAVAILABLE' }
    const token = `${session.signIn.id}-${session.token}`
    session.token += 1
    session.refreshAt = this.#now + 5_000
    const use = {
      token,
      next: `${session.signIn.id}-${session.token}`,
      sid: session.identity.sid,
      grant: session.signIn.id,
      replica,
    }
    this.#events.push({ type: 'refresh', ...use, begin: this.#now - 2, end: this.#now, accepted: true, answered: true })
    return undefined
  }

  #closeStreams(): void {
    this.#streams = this.#streams.filter(({ session, stream }) => {
      const { replica, application, begin } = stream
      const process = this.#fault('replica', replica)
      const { browser } = session.signIn
      const isCut =
        process ?? this.#fault('clients', replica, { browser }) ?? this.#fault('application', replica, { application })
      const isEnded = !session.isLive && !this.#fault('store', replica)
      const isLeft = this.#now > begin + 3_000
      if (!isCut && !isEnded && !isLeft) return true
      const reason = isCut ? 'error' : isEnded ? 'gateway' : 'browser'
      this.#events.push({ ...stream, end: this.#now, reason, lastMessage: this.#now })
      return false
    })
  }

  /** A browser signs in, sends a request and signs out at each replica. */
  #proveLife(name: string): void {
    const browser = this.#browsers.find((one) => one.name === name) as Browser
    for (const replica of replicas) {
      const steps = [this.#signIn, () => this.#request(browser, 'page', replica), this.#signOut]
      for (const step of steps) {
        this.#now += 200
        step.call(this, browser, replica)
        this.#closeStreams()
      }
    }
  }

  #sample(): void {
    for (const replica of replicas)
      this.#events.push({
        type: 'sample',
        at: this.#now,
        of: `${replica}-1`,
        calm: true,
        memory: 9e7,
        used: 3e7,
        files: 40,
      })
    this.#events.push({ type: 'sample', at: this.#now, of: 'store', calm: true, keys: 3 })
  }
}
