// What is certain, and what is possible, in a history. It knows the documentation, and nothing of
// the program.
import { Alibis, type Cause, type Place, type Span } from './alibis.ts'
import { bounds } from './bounds.ts'
import type {
  Attempt,
  Ending,
  Fault,
  HistoryEvent,
  Identity,
  LogoutCall,
  OwnSession,
  Part,
  Proof,
  Receipt,
  Refresh,
  Request,
  Run,
  SignIn,
  Stream,
  Token,
} from './history.ts'

/**
 * From `at`, no replica may admit the session, except within the bound of one that was disturbed.
 */
export interface CertainEnd {
  readonly at: number
  /** From when to when the order was carried out. */
  readonly order: Span
  /** A request that was refused because the session had ended, if no other cause is known. */
  readonly cause: Ending | SignIn | Request | Refresh | Fault | 'timeout'
}

/** An end of a session that may have happened, from one moment on. */
interface PossibleEnd {
  readonly from: number
  /** If the ending happened, no request may be admitted after this time. `Infinity`: no limit. */
  readonly until: number
  /** When the last replica learns of it. */
  readonly takesEffect: number
}

/** The events of one type, in the order in which they begin. */
function eventsOf<T extends HistoryEvent['type']>(history: readonly HistoryEvent[], type: T) {
  const start = (event: HistoryEvent) => ('begin' in event ? event.begin : event.at)
  const events = history.filter((event): event is Extract<HistoryEvent, { type: T }> => event.type === type)
  return events.sort((a, b) => start(a) - start(b))
}

/** An index of a history. */
export class Facts {
  readonly run: Run
  readonly isComplete: boolean
  readonly signIns: ReadonlyMap<string, SignIn>
  readonly requests: readonly Request[]
  /** By the `id` of the request. */
  readonly receipts: ReadonlyMap<string, readonly Receipt[]>
  readonly endings: readonly Ending[]
  readonly streams: readonly Stream[]
  readonly samples: readonly Extract<HistoryEvent, { type: 'sample' }>[]
  readonly deaths: readonly Extract<HistoryEvent, { type: 'death' }>[]
  /** By refresh token. */
  readonly uses: ReadonlyMap<string, readonly Refresh[]>
  readonly faults: readonly Fault[]
  readonly alibis: Alibis
  readonly ownSessions: readonly OwnSession[]
  /** By cookie. */
  readonly logoutCalls: ReadonlyMap<string, readonly LogoutCall[]>
  readonly proofs: readonly Proof[]
  readonly tokens: ReadonlyMap<string, Token>
  /** Why the world broke off. */
  readonly broken: string | undefined

  readonly #requestsOf: ReadonlyMap<string | undefined, readonly Request[]>
  readonly #streamsOf: ReadonlyMap<string, readonly Stream[]>
  readonly #refreshesOf: ReadonlyMap<string, readonly Refresh[]>
  /** By the `sid` of the session that an ending names. */
  readonly #endingsOf: ReadonlyMap<string | undefined, readonly Ending[]>
  /** When an order came first. Its sender repeats it until it is confirmed. */
  readonly #cameFirst: ReadonlyMap<string, number>
  readonly #signInsOf: ReadonlyMap<string, readonly SignIn[]>
  readonly #proofsOf: ReadonlyMap<string, readonly Proof[]>
  /** When claims were read, by grant. */
  readonly #readsOf: ReadonlyMap<string, readonly { readonly at: number }[]>
  readonly #ownSessionsOf: ReadonlyMap<string | undefined, readonly OwnSession[]>
  readonly #successors: ReadonlyMap<string | undefined, readonly SignIn[]>
  readonly #possible = new Map<string, readonly PossibleEnd[]>()
  readonly #certain = new Map<string, readonly CertainEnd[]>()

  /** @throws Error when the history has no `run`. */
  constructor(history: readonly HistoryEvent[]) {
    const [run] = eventsOf(history, 'run')
    if (run === undefined) throw new Error('The history has no event "run".')
    this.run = run
    this.isComplete = history.some(({ type }) => type === 'end')
    const signIns = eventsOf(history, 'sign-in')
    this.signIns = new Map(signIns.map((signIn) => [signIn.id, signIn]))
    this.requests = eventsOf(history, 'request')
    this.receipts = Map.groupBy(eventsOf(history, 'receipt'), ({ request }) => request)
    this.endings = eventsOf(history, 'ending')
    this.streams = eventsOf(history, 'stream')
    this.samples = eventsOf(history, 'sample')
    this.deaths = eventsOf(history, 'death')
    const refreshes = eventsOf(history, 'refresh')
    this.uses = Map.groupBy(refreshes, ({ token }) => token)
    this.faults = eventsOf(history, 'fault')
    this.alibis = new Alibis(history, run.replicas)
    this.ownSessions = eventsOf(history, 'own-session')
    this.logoutCalls = Map.groupBy(eventsOf(history, 'logout-call'), ({ cookie }) => cookie)
    this.broken = eventsOf(history, 'broken')[0]?.reason
    this.proofs = eventsOf(history, 'proof')
    this.tokens = new Map(eventsOf(history, 'token').map((token) => [token.id, token]))
    this.#proofsOf = Map.groupBy(this.proofs, ({ session }) => session)
    this.#readsOf = Map.groupBy(eventsOf(history, 'claims-read'), ({ grant }) => grant)
    const sessions = new Map(this.requests.map(({ id, session }) => [id, session]))
    this.#ownSessionsOf = Map.groupBy(this.ownSessions, ({ request }) => sessions.get(request))
    this.#requestsOf = Map.groupBy(this.requests, ({ session }) => session)
    this.#streamsOf = Map.groupBy(this.streams, ({ session }) => session)
    this.#refreshesOf = Map.groupBy(refreshes, ({ sid }) => sid)
    this.#endingsOf = Map.groupBy(this.endings, ({ session }) => this.signIns.get(session ?? '')?.identity?.sid)
    this.#cameFirst = new Map(this.endings.map(({ id, begin }) => [id, begin] as const).toReversed())
    this.#signInsOf = Map.groupBy(signIns, ({ browser }) => browser)
    this.#successors = Map.groupBy(signIns.filter(mayHaveCreated), ({ replaces }) => replaces)
  }

  /** See {@link Alibis.disturbances}. */
  disturbances(parts: readonly Part[], span: Span, place: Place = {}): Cause[] {
    return this.alibis.disturbances(parts, span, place)
  }

  /** See {@link Alibis.causes}. */
  causes(parts: readonly Part[], span: Span, place: Place): Cause[] {
    return this.alibis.causes(parts, span, place)
  }

  /** Where something has to be in the way to concern an operation. */
  placeOf(one: Attempt | Stream): Place {
    const browser = 'browser' in one ? one.browser : this.signIns.get(one.session ?? '')?.browser
    return {
      replica: one.replica,
      client: browser === undefined ? '' : `browser ${browser}`,
      ...('application' in one && { application: one.application }),
    }
  }

  /** What was expected to succeed: all but the endings that only the provider knows. */
  get attempts(): readonly Attempt[] {
    const orders = this.endings.filter(({ by }) => by !== 'provider')
    return [...this.requests, ...this.signIns.values(), ...orders, ...this.proofs]
  }

  /** Whether an application received the request of this session, or responded to it. */
  isAdmitted(request: Request): boolean {
    return request.identity !== undefined || this.receipts.has(request.id)
  }

  /**
   * What disturbed another replica that used the session just before: the session may be locked, or
   * have lost its tokens, as this replica left its refresh undone.
   */
  othersToWaitFor(attempt: Attempt): Cause[] {
    if (attempt.type !== 'request' || attempt.session === undefined) return []
    const lease = { begin: attempt.begin - bounds.lease, end: attempt.end }
    const before = { begin: lease.begin - bounds.leftUndone, end: lease.end }
    const uses = this.#usesOf(attempt.session).filter(({ begin, end }) => begin <= before.end && end >= before.begin)
    const isLeft = ({ begin, end, replica }: Cause) =>
      uses.some((use) => use.replica === replica && use.begin <= end && use.end >= begin - bounds.leftUndone)
    return [...new Set(uses.map(({ replica }) => replica))]
      .filter((replica) => replica !== attempt.replica)
      .flatMap((replica) => this.causes(['provider', 'store', 'replica'], lease, { replica }))
      .filter(isLeft)
  }

  #usesOf(session: string): readonly (Request | SignIn | Stream)[] {
    const requests = this.#requestsOf.get(session) ?? []
    const signIn = this.signIns.get(session)
    return [...requests, ...(this.#streamsOf.get(session) ?? []), ...(signIn === undefined ? [] : [signIn])]
  }

  /**
   * Whether a request may have needed the provider: its access token may have expired, or Redis may
   * have another run than the one that the session was created in.
   */
  mayNeedProvider({ session, token, replica, begin, end, application }: Request): boolean {
    // Each process verifies an access token, and gets a token for this application.
    if (token !== undefined || application === 'api') return true
    const signIn = this.signIns.get(session ?? '')
    const { accessTokenLifetime = 0 } = this.run
    if (signIn === undefined) return false
    const refreshes = (this.#refreshesOf.get(signIn.identity?.sid ?? '') ?? []).filter(
      (one) => one.accepted && one.grant === signIn.grant && one.end < begin,
    )
    const fresh = Math.max(signIn.begin, ...refreshes.map((one) => one.begin))
    const life = { begin: fresh, end }
    const clocks = this.disturbances(['clock'], life, { replica }).length > 0 ? bounds.clocks : 0
    const isDoubtful = this.faults.some((one) => one.losesWrites && one.begin <= end && one.end >= signIn.begin)
    return isDoubtful || end >= fresh + accessTokenLifetime - clocks
  }

  /** Who the applications saw in a request. */
  seen(request: Request): Identity[] {
    const received = (this.receipts.get(request.id) ?? []).map(({ identity }) => identity)
    return request.identity === undefined ? received : [...received, request.identity]
  }

  /** The ends of a session that are certain, in their order. */
  certainEnds(session: string): readonly CertainEnd[] {
    const known = this.#certain.get(session)
    if (known !== undefined) return known
    const signIn = this.signIns.get(session)
    const ends = signIn === undefined ? [] : this.#certainEndsOf(signIn).sort((a, b) => a.at - b.at)
    this.#certain.set(session, ends)
    return ends
  }

  #certainEndsOf(signIn: SignIn): CertainEnd[] {
    const ordered = this.endings.filter(
      (ending) =>
        ending.confirmed &&
        covers(ending, signIn) &&
        // The sid of an order of the provider has ended there, so a sign-in under way also fails.
        (isOfProvider(ending) && ending.sid !== undefined
          ? signIn.begin < ending.begin
          : signIn.end <= this.#firstOf(ending)),
    )
    // A sign-in also succeeds when the previous session could not be ended yet.
    const replaced = (this.#successors.get(signIn.id) ?? []).filter(
      (next) => next.signedIn && this.disturbances(['store', 'replica'], next, { replica: next.replica }).length === 0,
    )
    const ends: CertainEnd[] = [...ordered, ...replaced].map((cause) => ({ at: cause.end, order: cause, cause }))
    const refusals = (this.#requestsOf.get(signIn.id) ?? []).filter(
      (one) => one.code === 'ERR_UNAUTHENTICATED' && one.unproved !== true && !this.isWithdrawing(one),
    )
    for (const cause of refusals) {
      const orders = this.#ordersBefore(signIn, cause.end)
      // An order that was not acknowledged may be known to one process only, and die with it. The
      // same is true of an end at the provider that a process learns of during a fault.
      const isCalm = this.disturbances(['store', 'replica', 'provider'], cause).length === 0
      const isKept = (order: Ending | SignIn) =>
        order.type === 'ending' ? order.confirmed || (order.by === 'provider' && isCalm) : order.signedIn
      if (!orders.every(isKept)) continue
      const order = { begin: cause.begin, end: Math.max(cause.end, ...orders.map(({ end }) => end)) }
      ends.push({ at: order.end + bounds.proof, order, cause })
    }
    for (const cause of this.#rejectedRefreshes(signIn)) {
      // The replica ends the session after the response, so a fault may begin in between.
      const order = { begin: cause.begin, end: cause.end + bounds.ending }
      ends.push({ at: cause.end + bounds.proof, order, cause })
    }
    for (const cause of this.#withdrawals(signIn))
      ends.push({ at: cause.end, order: { begin: cause.begin, end: cause.end }, cause })
    const { latest } = this.#timeout(signIn)
    const life = { begin: signIn.begin, end: latest + bounds.clocks }
    const at = this.disturbances(['clock'], life).length === 0 ? latest : life.end
    return [...ends, { at, order: { begin: at, end: at }, cause: 'timeout' }]
  }

  /** A process that could not carry out an order keeps the time when it came first. */
  #firstOf({ id, begin }: Ending): number {
    return this.#cameFirst.get(id) ?? begin
  }

  /**
   * When the provider rejected the refresh token of the session, and the replica was certain to
   * hear of it in time. A token that was used before says nothing: another replica has its
   * successor.
   */
  #rejectedRefreshes({ grant, identity }: SignIn): Refresh[] {
    const ofSid = this.#refreshesOf.get(identity?.sid ?? '') ?? []
    const ofSession = ofSid.filter((refresh) => grant !== undefined && refresh.grant === grant)
    return ofSession.filter(({ isRejected = false, answered, token, begin, end, replica }) => {
      const isReused = this.uses.get(token)?.some((use) => use.accepted) ?? false
      const isInTime = answered && end - begin < bounds.refresh
      const until = { begin, end: end + bounds.proof }
      const near = this.disturbances(['store', 'replica', 'provider', 'clock'], until, { replica })
      return isRejected && !isReused && isInTime && near.length === 0
    })
  }

  /**
   * The faults that took away the key that the session was sealed with. Each change of the session
   * seals it with the key of that time, so no process may have changed it meanwhile.
   */
  #withdrawals({ id, grant = '', end, identity }: SignIn): Fault[] {
    const refreshes = (this.#refreshesOf.get(identity?.sid ?? '') ?? []).map(({ end }) => end)
    const others = [this.#readsOf.get(grant) ?? [], this.#ownSessionsOf.get(id) ?? []].flat().map(({ at }) => at)
    const proofs = (this.#proofsOf.get(id) ?? []).flatMap(({ begin, end }) => [begin, end])
    const changes = [...refreshes, ...others, ...proofs]
    return this.faults.filter((fault) => {
      if (fault.endsSessions !== true || end > fault.begin) return false
      const span = { begin: fault.begin - bounds.stored, end: fault.end + bounds.stored }
      // Something may also have held a change back.
      const isInTime = this.run.replicas.every((replica) => this.alibis.stalled(span, replica) < bounds.patience)
      const isCalm = this.causes(['provider', 'store'], span, {}).length === 0
      return isInTime && isCalm && !changes.some((at) => at > span.begin && at < span.end)
    })
  }

  /** Between which times a session without an ending expires. */
  #timeout(signIn: SignIn): { earliest: number; latest: number } {
    const { idleTimeout, absoluteTimeout } = this.run
    const requests = this.#requestsOf.get(signIn.id) ?? []
    const streams = this.#streamsOf.get(signIn.id) ?? []
    const uses = [signIn, ...requests, ...streams].sort((a, b) => a.begin - b.begin)
    let lastUse = signIn.end
    for (const { begin, end } of uses) if (begin <= lastUse + idleTimeout) lastUse = Math.max(lastUse, end)
    const admitted = [signIn, ...requests.filter((request) => this.isAdmitted(request))].sort(
      (a, b) => a.begin - b.begin,
    )
    const idle = idleTimeout * (1 - bounds.idleEarlier)
    const gap = admitted.find((use, index) => (admitted[index + 1]?.begin ?? Infinity) > use.begin + idle) ?? signIn
    return {
      earliest: Math.min(signIn.begin + absoluteTimeout, gap.begin + idle),
      latest: Math.min(signIn.end + absoluteTimeout, lastUse + idleTimeout),
    }
  }

  /**
   * Whether a replica may have refused a session in this time because it had ended. An end that is
   * not certain did not happen if the session was admitted after it, and before this time.
   */
  mayHaveEnded(session: string, { begin, end }: Span): boolean {
    return this.#possibleEndsOf(session).some(
      (one) => one.from <= end && !(one.until < Infinity && this.#isAdmittedBetween(session, one.until, begin)),
    )
  }

  /** Whether the provider had rejected a refresh token of the session by this time. */
  hasLostGrant(session: string, time: number): boolean {
    const refreshes = this.#refreshesOf.get(this.signIns.get(session)?.identity?.sid ?? '') ?? []
    return refreshes.some(({ isRejected, begin }) => isRejected === true && begin <= time)
  }

  /** Whether the session may have ended just in this time. */
  mayBeEnding(session: string, { begin, end }: Span): boolean {
    return this.#possibleEndsOf(session).some(({ from, until, takesEffect }) => {
      return from <= end && Math.min(until, takesEffect) >= begin
    })
  }

  #isAdmittedBetween(session: string, after: number, before: number): boolean {
    const requests = this.#requestsOf.get(session) ?? []
    return requests.some((one) => one.begin > after && one.end < before && this.isAdmitted(one))
  }

  #possibleEndsOf(session: string): readonly PossibleEnd[] {
    const known = this.#possible.get(session)
    if (known !== undefined) return known
    const signIn = this.signIns.get(session)
    const ends = signIn === undefined ? [] : this.#possibleEnds(signIn)
    this.#possible.set(session, ends)
    return ends
  }

  #possibleEnds(signIn: SignIn): PossibleEnd[] {
    const sid = signIn.identity?.sid ?? ''
    const { earliest } = this.#timeout(signIn)
    // A replica serves from memory what it has heard nothing of.
    const unheard = bounds.proof + this.run.grace
    const lost = this.faults.filter(
      ({ losesWrites, begin, end }) =>
        losesWrites &&
        begin - bounds.lostWrites <= signIn.end &&
        // The earlier primary takes writes until it learns of the other one.
        signIn.begin <= end + bounds.recovery.store,
    )
    // A sign-out also ends the session at the provider, which other sessions share.
    const orders = [...this.#ordersBefore(signIn, Infinity), ...(this.#endingsOf.get(sid) ?? [])]
    const withdrawn = this.faults.filter(({ endsSessions, end }) => endsSessions && end > signIn.begin)
    const rejected = (this.#refreshesOf.get(sid) ?? []).filter(({ accepted }) => !accepted)
    return [
      { from: earliest, until: Infinity, takesEffect: Infinity },
      ...lost.map(({ end }) => {
        const over = end + bounds.recovery.store
        return { from: signIn.begin, until: over + unheard, takesEffect: over }
      }),
      ...orders.map((order) => {
        const isCertain = order.type === 'ending' ? order.confirmed || order.by === 'provider' : order.signedIn
        const until = isCertain ? Infinity : order.end + bounds.repeatedOrder + unheard
        const isKnown = order.type !== 'ending' || order.by !== 'provider'
        return { from: startOf(order), until, takesEffect: isKnown && isCertain ? order.end + unheard : until }
      }),
      ...withdrawn.map(({ begin, end }) => ({ from: begin, until: end + unheard, takesEffect: end })),
      ...rejected.map((one) => ({ from: one.begin, until: one.end + unheard, takesEffect: one.end + unheard })),
    ]
  }

  /**
   * Until when a replica may still admit a session that has ended, for a request that ended at
   * `until`. A replica that confirmed the ending may not at all.
   */
  bound({ at, order, cause }: CertainEnd, replica: string, until: number): number {
    if (cause === 'timeout') return at
    const isDisturbed = this.disturbances(['store', 'replica', 'clock'], order, { replica }).length > 0
    if (!isDisturbed && order.end - order.begin < bounds.confirmations) return at
    const proof = at + bounds.proof
    const isAway = this.disturbances(['store'], { begin: at, end: until }, { replica }).length > 0
    return isDisturbed && isAway ? proof + this.run.grace : proof
  }

  /** The orders that cover a session, or may, and began before `time`. */
  #ordersBefore(signIn: SignIn, time: number): (Ending | SignIn)[] {
    const orders = this.endings.filter((ending) => covers(ending, signIn))
    return [...orders, ...(this.#successors.get(signIn.id) ?? [])].filter(({ begin }) => begin < time)
  }

  /** Whether an order concerned this person in this time, or may have been repeated in it. */
  isEnding(person: string, { begin, end }: Span): boolean {
    const signIns = [...this.signIns.values()]
    const ofPerson = signIns.filter((signIn) => signIn.person === person)
    // A session that ended before it had an ID Token may be that of any person.
    const isUnknown = ({ sid }: Ending) => sid !== undefined && !signIns.some(({ identity }) => identity?.sid === sid)
    // An order that was not acknowledged may be carried out later.
    const lastEnd = ({ by, confirmed, end }: Ending) =>
      confirmed || by === 'provider' ? end + bounds.roundTrip : end + bounds.repeatedOrder
    return this.endings.some(
      (ending) =>
        startOf(ending) <= end &&
        lastEnd(ending) >= begin &&
        (isUnknown(ending) || ofPerson.some((signIn) => covers(ending, signIn))),
    )
  }

  /**
   * The session that a browser had when it began a sign-in without a session cookie, and that had
   * no reason to end. Not where two sign-ins, or late responses to an earlier session, raced.
   */
  lostBefore(signIn: SignIn): SignIn | undefined {
    if (signIn.replaces !== undefined || this.isSigningIn(signIn)) return undefined
    const earlier = this.#signInsOf.get(signIn.browser) ?? []
    const last = earlier.findLast(({ signedIn, end }) => signedIn && end < signIn.begin)
    if (last === undefined || this.isSigningIn(last) || this.mayHaveEnded(last.id, signIn)) return undefined
    const isRaced = this.requests.some(
      ({ browser, session, begin, end }) =>
        browser === last.browser && session !== last.id && begin <= last.end && end >= last.begin,
    )
    const isSigningOut = this.endings.some(
      ({ session, begin, end }) =>
        session !== undefined &&
        session !== last.id &&
        this.signIns.get(session)?.browser === last.browser &&
        begin <= signIn.begin &&
        end + bounds.response >= last.begin,
    )
    return isRaced || isSigningOut ? undefined : last
  }

  /** Whether the application was told of the end of a session while it may still be told. */
  isToldInTime({ cookie }: OwnSession, { at }: CertainEnd): boolean {
    const latest = at + bounds.logoutCall
    const late = this.alibis.stalled({ begin: at, end: latest }, undefined)
    return (this.logoutCalls.get(cookie) ?? []).some((call) => call.at <= latest + late)
  }

  /**
   * Whether the cookie or the job of a logout call may have been lost with writes of the store, or
   * cannot be opened without its key, or the job is not due yet, or the application was away at
   * first.
   */
  mayLackLogoutCall(own: OwnSession, { at, order }: CertainEnd): boolean {
    const { application } = own
    const replica = this.requests.find(({ id }) => id === own.request)?.replica
    const kept = { begin: own.at, end: own.at + bounds.stored }
    const done = { begin: order.begin, end: at + bounds.firstLogoutCalls }
    const isLost = this.faults.some(
      ({ losesWrites, begin, end }) =>
        losesWrites && [kept, done].some((one) => begin - bounds.lostWrites <= one.end && end >= one.begin),
    )
    const isUnreadable = this.isWithdrawing({ begin: own.at, end: at })
    // The only process may die between the ending and its first look for calls.
    const isAlone = this.run.replicas.length === 1 && this.run.workers === 1
    return (
      isLost ||
      isUnreadable ||
      (isAlone && this.disturbances(['replica'], done).length > 0) ||
      (this.requests.at(-1)?.begin ?? 0) < at + bounds.logoutCall ||
      this.disturbances(['store', 'replica'], kept, { replica }).length > 0 ||
      this.disturbances(['application'], done, { application }).length > 0
    )
  }

  /** Whether a request without a proof may be admitted, or refused, because of its time. */
  deviceOf({ session = '', begin, end }: Request): { readonly mayPass: boolean; readonly mayFail: boolean } {
    const tried = (this.#proofsOf.get(session) ?? []).filter(({ purpose }) => purpose === 'registration')
    const [first] = tried
    const isBound = tried.some(({ proved }) => proved)
    if (first === undefined) return { mayPass: true, mayFail: false }
    const span = { begin: first.begin, end }
    const clocks = this.disturbances(['clock'], span).length > 0 ? bounds.clocks : 0
    const isLost = this.faults.some(
      ({ losesWrites, ...one }) =>
        losesWrites && one.begin - bounds.lostWrites <= first.end && first.begin <= one.end + bounds.recovery.store,
    )
    return {
      mayPass: !isBound || isLost || begin <= first.end + bounds.tolerance + clocks,
      mayFail: first.code === undefined && end >= first.begin + bounds.tolerance - clocks,
    }
  }

  /**
   * When an access token has certainly ended at a replica: its time, or an order of the provider. A
   * process that was away meanwhile may not know of the order.
   */
  tokenEnd(token: Token, { replica, end }: Request): { readonly at: number; readonly cause: Ending | Token } {
    const clocks = this.disturbances(['clock'], { begin: token.at, end }).length > 0 ? bounds.clocks : 0
    const isCut = (since: number) =>
      this.disturbances(['store', 'replica', 'clock'], { begin: since, end }, { replica }).some(
        (cause) => !cause.isDelay || cause.end - cause.begin >= bounds.patience,
      )
    const order = this.endings.find(
      (ending) =>
        isOfProvider(ending) &&
        ending.confirmed &&
        ending.replayed !== true &&
        this.#firstOf(ending) > token.at + 1_000 &&
        isAbout(ending, token) &&
        !isCut(ending.begin),
    )
    const expired = { at: token.expires + bounds.tolerance + clocks, cause: token }
    return order !== undefined && order.end + bounds.proof < expired.at
      ? { at: order.end + bounds.proof, cause: order }
      : expired
  }

  /** Whether an access token may have been over, at any replica. */
  mayBeOver(token: Token, { end }: Span): boolean {
    const clocks = this.disturbances(['clock'], { begin: token.at, end }).length > 0 ? bounds.clocks : 0
    const ofSid = [...this.signIns.values()].filter(({ identity }) => identity?.sid === token.sid)
    return (
      // Times of tokens are in whole seconds.
      end >= token.expires - 1_000 - clocks ||
      this.endings.some((ending) => startOf(ending) <= end && isAbout(ending, token)) ||
      ofSid.some(({ id }) => this.mayHaveEnded(id, { begin: end, end }))
    )
  }

  /** Whether keys were taken away in this time, from one replica after the other. */
  isWithdrawing({ begin, end }: Span): boolean {
    return this.faults.some((fault) => fault.endsSessions && fault.begin <= end && fault.end >= begin)
  }

  /** Whether another sign-in of the browser was under way in this time: both share its cookies. */
  isSigningIn({ id, browser, begin, end }: SignIn): boolean {
    const ofBrowser = this.#signInsOf.get(browser) ?? []
    return ofBrowser.some((other) => other.id !== id && other.begin <= end && other.end >= begin)
  }
}

/** With these codes, a sign-in is refused before the gateway creates its session. */
const refusedBefore: ReadonlySet<string | undefined> = new Set([
  ...['ERR_SIGN_IN_COOKIE', 'ERR_SIGN_IN_DECLINED', 'ERR_SIGN_IN_EXPIRED', 'ERR_SIGN_IN_REFUSED'],
  ...['ERR_SIGN_IN_RESPONSE', 'ERR_PROVIDER_UNAVAILABLE'],
])

/** Whether a sign-in may have created a session, and ended the one that it replaces. */
function mayHaveCreated({ signedIn, code }: SignIn): boolean {
  return signedIn || !refusedBefore.has(code)
}

/** When the session that an order covers may have ended first. */
function startOf(order: Ending | SignIn | Refresh): number {
  const isEarlier = order.type === 'ending' && isOfProvider(order)
  return isEarlier ? order.begin - bounds.order : order.begin
}

/** Whether the provider sends it when it has ended the session itself. */
function isOfProvider({ by }: Ending): boolean {
  return by === 'logout-token' || by === 'signal'
}

function isAbout({ sid, sub }: Ending, token: Identity): boolean {
  return sid === undefined ? sub === token.sub : sid === token.sid
}

/** Whether an order covers a session, or may cover it because the sign-in was under way. */
function covers(ending: Ending, { id, begin, identity }: SignIn): boolean {
  const { session, sid, sub, end, status, replayed, confirmed } = ending
  // A process that cannot ask the store does not know that it is repeated: it obeys it alone.
  if (replayed && confirmed) return false
  if (session !== undefined) return session === id
  // An order that got no response may be read later, by a replica that hangs: it ends what is
  // there. One that was refused is repeated for what began before it.
  if (begin >= (status === undefined ? end + bounds.repeatedOrder : end)) return false
  return sid === undefined ? sub !== undefined && sub === identity?.sub : sid === identity?.sid
}
