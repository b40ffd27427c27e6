import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findingsOf, type Property } from '../../chaos/checker.ts'
import type {
  Ending,
  Fault,
  HistoryEvent,
  Receipt,
  Refresh,
  Request,
  SignIn,
  Stream,
  Touch,
} from '../../chaos/history.ts'
import { modelHistory } from '../../chaos/model.ts'
import { partOf } from '../../chaos/parties.ts'
import { reasons } from '../../chaos/reasons.ts'
import { errorCodes } from '../../src/core/error-codes.ts'
import { searchFor } from '../support/searches.ts'

type EventOf<T extends HistoryEvent['type']> = Extract<HistoryEvent, { type: T }>

/** What the model has written, by seed and grace: no test changes an event. */
const histories = new Map<string, readonly HistoryEvent[]>()

/** A history of the model, in which a test plants a fault. */
class Planted {
  readonly events: HistoryEvent[]

  constructor(seed: number, grace = 0) {
    const key = `${seed} ${grace}`
    const history = histories.get(key) ?? modelHistory(seed, grace)
    histories.set(key, history)
    this.events = [...history]
  }

  all<T extends HistoryEvent['type']>(type: T): EventOf<T>[] {
    return this.events.filter((event): event is EventOf<T> => event.type === type)
  }

  /** When nothing fails any more because of a fault. */
  afterFaults(): number {
    return Math.max(...this.all('fault').map(({ end }) => end)) + 5_000
  }

  /** The first event of a type that a test can use. */
  find<T extends HistoryEvent['type']>(type: T, isGood: (event: EventOf<T>) => boolean): EventOf<T> {
    const found = this.all(type).find(isGood)
    assert.ok(found, `the model has no such ${type}`)
    return found
  }

  change<T extends HistoryEvent>(event: T, change: Partial<T>): T {
    const changed = { ...event, ...change }
    this.events[this.events.indexOf(event)] = changed
    return changed
  }

  /** Whether no fault was active or just healed around this time. */
  isCalm(at: number): boolean {
    return !this.all('fault').some(({ begin, end, part }) => part && begin < at + 1_000 && end > at - 11_000)
  }

  /** An admitted request of the session, and what the application received. */
  admit({ id, person, browser, identity }: SignIn, begin: number, replica: string): void {
    assert.ok(identity)
    const request = `planted-${begin}`
    const common = { ...{ person, browser, session: id, replica }, kind: 'page', application: 'orders' } as const
    this.events.push({ type: 'receipt', at: begin + 1, request, application: 'orders', identity })
    this.events.push({
      type: 'request',
      id: request,
      ...common,
      begin,
      end: begin + 2,
      status: 200,
      identity,
      echo: request,
    })
  }

  signIn(session: string | undefined): SignIn {
    return this.find('sign-in', ({ id }) => id === session)
  }

  /** A page, form or upload that an application answered while there was no fault. */
  calmRequest(kind: Request['kind'] = 'page'): Request {
    return this.find('request', (one) => one.kind === kind && one.identity !== undefined && this.isCalm(one.begin))
  }

  receipt({ id }: Request): Receipt {
    return this.find('receipt', ({ request }) => request === id)
  }

  calmEnding(by: Ending['by']): Ending {
    return this.find('ending', (one) => one.by === by && one.confirmed && this.isCalm(one.begin))
  }

  /** A session of a person and a browser that the model does not have. */
  freshSession(begin: number): SignIn {
    const common = {
      type: 'sign-in',
      id: 'planted',
      person: 'dan',
      browser: 'dan-1',
      replica: 'a',
      status: 302,
    } as const
    const signIn = { ...common, signedIn: true, identity: { sub: 'dan', sid: 'planted' }, begin, end: begin + 50 }
    this.events.push(signIn)
    return signIn
  }

  signOut({ id }: SignIn, begin: number): Ending {
    const order = { type: 'ending', id: 'planted', by: 'sign-out', session: id, replica: 'a' } as const
    const ending = { ...order, status: 200, confirmed: true, begin, end: begin + 10 }
    this.events.push(ending)
    return ending
  }

  /** Binds a session to a key. */
  bind(signIn: SignIn, begin: number): SignIn {
    const { id: session, person, browser } = signIn
    const proof = { type: 'proof', id: 'planted', purpose: 'registration', session, person, browser } as const
    this.events.push({ ...proof, replica: 'a', status: 200, proved: true, begin, end: begin + 10 })
    return signIn
  }

  /** A program is admitted with an access token. */
  call(begin: number, expires: number): void {
    const identity = { sub: 'dan', sid: 'planted' }
    this.events.push({ type: 'token', id: 'planted', at: 1_000, expires, ...identity })
    const request = { type: 'request', id: 'call', kind: 'call', person: 'dan', browser: 'caller-1' } as const
    const call = { ...request, token: 'planted', replica: 'b', application: 'api', begin, end: begin + 5 }
    this.events.push({ ...call, status: 200, identity, echo: 'call' })
  }

  /** A session of an application whose session ends after two seconds. */
  endOwnSession(): EventOf<'own-session'> {
    const signIn = this.freshSession(1_000)
    this.admit(signIn, 1_100, 'a')
    this.admit(signIn, 1_200, 'a')
    this.signOut(signIn, 2_000)
    const [first, second] = this.all('receipt').slice(-2)
    assert.ok(first && second)
    const { request, application, identity } = first
    this.change(second, { cookie: 'c' })
    const own = { type: 'own-session', at: 1_101, request, application, cookie: 'c', identity } as const
    this.events.push(own)
    return own
  }

  /** A stream of a session at replica c, until its browser leaves. */
  keepOpen(signIn: SignIn, begin: number, end: number): Stream {
    this.admit(signIn, begin, 'c')
    const request = this.change(this.all('request').at(-1) as Request, { kind: 'stream' })
    const { session = '', replica, application } = request
    const base = { type: 'stream', request: request.id, session, replica, application } as const
    const stream = { ...base, begin, end, lastMessage: end, reason: 'browser' } as const
    this.events.push(stream)
    return stream
  }

  /** A session whose refresh token the provider rejects, and when each replica knows that. */
  rejectedRefresh(begin: number): [SignIn, number] {
    const signIn = this.change(this.freshSession(begin), { grant: 'planted' })
    const use = { token: 'planted', sid: 'planted', grant: 'planted', replica: 'a', accepted: false }
    const response = { isRejected: true, answered: true, begin: begin + 1_000, end: begin + 1_010 }
    this.events.push({ type: 'refresh', ...use, ...response })
    return [signIn, response.end + 1_501]
  }

  /** A session that replica b has used waits at replica c while a replica is suspended. */
  waitForReplica(suspended: string): void {
    const { begin } = this.calmRequest()
    const signIn = this.freshSession(begin)
    // Its access token has expired.
    this.admit(signIn, begin + 5_100, 'b')
    this.admit(signIn, begin + 5_200, 'c')
    const suspend = { id: 'planted', kind: 'suspend', part: 'replica', replicas: [suspended] } as const
    this.events.push({ type: 'fault', ...suspend, begin: begin + 5_150, end: begin + 5_250 })
    refuse(this, { status: 503, code: 'ERR_PROVIDER_UNAVAILABLE' }, this.all('request').at(-1))
  }

  /** What a proxy saw on the link of a replica. */
  touch(from: string, to: string, how: Touch['how'], span: Pick<Touch, 'begin' | 'end'>): void {
    this.events.push({ type: 'touch', from, to, part: partOf(to), how, ...span })
  }

  coveredBy(ending: Ending): SignIn {
    const { sid, session, begin } = ending
    return this.find('sign-in', (one) => (one.id === session || one.identity?.sid === sid) && one.end < begin)
  }

  fault(isGood: (fault: Fault) => boolean): Fault {
    return this.find('fault', isGood)
  }

  refusedAsEnded(): Request {
    return this.find('request', (one) => one.code === 'ERR_UNAUTHENTICATED' && this.isCalm(one.begin))
  }
}

for (const grace of [0, 3_000])
  test(`a gateway that behaves well gives no finding, with a grace of ${grace} ms`, () => {
    for (let seed = 1; seed <= searchFor(25, 8); seed += 1)
      assert.deepEqual(findingsOf(modelHistory(seed, grace)), [], `seed ${seed}`)
  })

test('each code with a reason is a code of the gateway', () => {
  assert.deepEqual(
    Object.keys(reasons).filter((code) => !errorCodes.some((one) => one === code)),
    [],
  )
})

test('a refresh that the network holds back may arrive after that of another replica', () => {
  const history = new Planted(11)
  const use = history.find('refresh', ({ begin }) => history.isCalm(begin))
  const [begin, end] = [use.end + 1_000, use.end + 1_010]
  history.touch('d', 'provider', 'held', { begin: use.begin - 3_000, end: begin })
  history.events.push({ ...use, begin, end, replica: 'd', accepted: false })

  assert.deepEqual(findingsOf(history.events), [])
})

test('a session may wait for a suspended replica that has used it', () => {
  const history = new Planted(11)
  history.waitForReplica('b')

  assert.deepEqual(findingsOf(history.events), [])
})

test('a store may be unavailable just after its process, or its proxy, had no processor', () => {
  const history = new Planted(11)
  const request = history.calmRequest()
  const { begin } = request
  history.events.push({ type: 'stall', of: 'world', begin: begin - 3_500, end: begin - 2_000, ms: 1_400 })
  refuse(history, { status: 503, code: 'ERR_STORE_UNAVAILABLE' }, request)

  assert.deepEqual(findingsOf(history.events), [])
})

test('a browser that lost its proof is refused, and its session goes on', () => {
  const history = new Planted(11)
  const begin = history.afterFaults()
  const signIn = history.bind(history.freshSession(begin), begin + 100)
  history.admit(signIn, begin + 40_000, 'a')
  const request = history.change(history.all('request').at(-1) as Request, { unproved: true })
  refuse(history, { status: 401, code: 'ERR_UNAUTHENTICATED' }, request)
  history.admit(signIn, begin + 43_000, 'b')

  assert.deepEqual(findingsOf(history.events), [])
})

test('a process without the store obeys a repeated order, and closes the streams of later sessions', () => {
  const history = new Planted(11)
  const stream = history.keepOpen(history.freshSession(1_000), 1_500, 4_000)
  const order = { type: 'ending', id: 'planted', by: 'signal', sub: 'dan', replica: 'c', replayed: true } as const
  const away = { status: 503, code: 'ERR_STORE_UNAVAILABLE', confirmed: false } as const
  history.touch('c', 'redis-1', 'silent', { begin: 2_000, end: 4_000 })
  history.events.push({ ...order, ...away, begin: 2_500, end: 4_000 })
  history.change(stream, { reason: 'gateway' })

  assert.deepEqual(findingsOf(history.events), [])
})

test('an order that is repeated after a 503 ends only what began before it came first', () => {
  const history = new Planted(11)
  const begin = history.afterFaults()
  const order = { type: 'ending', id: 'planted', by: 'signal', sub: 'dan', replica: 'c' } as const
  history.touch('c', 'redis-1', 'silent', { begin: begin - 3_000, end: begin + 500 })
  const away = { status: 503, code: 'ERR_STORE_UNAVAILABLE', confirmed: false } as const
  history.events.push({ ...order, ...away, begin, end: begin + 500 })
  const signIn = history.freshSession(begin + 1_000)
  history.events.push({ ...order, begin: begin + 2_000, end: begin + 2_100, status: 202, confirmed: true })
  history.admit(signIn, begin + 9_000, 'a')

  assert.deepEqual(findingsOf(history.events), [])
})

test('a provider that has rejected the refresh token of a session exchanges no token of it', () => {
  const history = new Planted(11)
  const begin = history.afterFaults()
  const [signIn, at] = history.rejectedRefresh(begin)
  // The response was held back, so the replica may not have heard of it.
  history.touch('a', 'provider', 'held', { begin, end: at })
  history.admit(signIn, at + 10_000, 'a')
  history.admit(signIn, at + 20_000, 'a')
  refuse(history, { status: 502, code: 'ERR_TOKEN_EXCHANGE' }, history.all('request').at(-1))

  assert.deepEqual(findingsOf(history.events), [])
})

test('an application is not told of a session whose key was removed before its end', () => {
  const history = new Planted(11)
  history.endOwnSession()
  const withdrawn = { type: 'fault', id: 'w', kind: 'keys-withdrawn', part: 'replica', replicas: ['d'] } as const
  history.events.push({ ...withdrawn, endsSessions: true, begin: 1_400, end: 1_500 })

  assert.deepEqual(
    findingsOf(history.events).filter(({ property }) => property === 'logout-call'),
    [],
  )
})

test('a worker may take memory with its first work, and keep it', () => {
  const history = new Planted(11)
  const last = history.all('sample').findLast(({ of }) => of === 'a-1') as EventOf<'sample'>
  const memory = (last.memory ?? 0) + 60 * 1024 ** 2
  history.change(last, { memory })
  history.events.push({ ...last, calm: false, at: last.at / 2 - 1_000, memory })

  assert.deepEqual(findingsOf(history.events), [])
})

test('a worker that a fault has killed did not end by itself', () => {
  const history = new Planted(11)
  const { end } = history.calmRequest()
  const kill = { id: 'planted', kind: 'kill-worker', part: 'replica', replicas: ['b'] } as const
  history.events.push({ type: 'fault', ...kill, begin: end - 5, end })
  history.events.push({ type: 'death', at: end, replica: 'b', reason: 'SIGKILL', worker: 17 })

  assert.deepEqual(findingsOf(history.events), [])
})

const plants: [what: string, property: Property, plant: (history: Planted) => unknown, grace?: number][] = [
  [
    'a replica admits a session a moment after its sign-out',
    'ended',
    (history) => {
      const signIn = history.freshSession(1_000)
      history.admit(signIn, history.signOut(signIn, 2_000).end + 1, 'c')
    },
  ],
  [
    'an application receives a request of an ended session, and its response is lost',
    'ended',
    (history) => {
      const signIn = history.freshSession(1_000)
      history.admit(signIn, history.signOut(signIn, 2_000).end + 1, 'c')
      const { status: _, identity: __, echo: ___, ...request } = history.all('request').at(-1) as Request
      history.events.splice(history.events.length - 1, 1, { ...request, error: 'ECONNRESET' })
      const { begin, end } = request
      history.touch(`browser ${request.browser}`, request.replica, 'reset', { begin, end })
    },
  ],
  [
    'a sign-in that was under way survives the Logout Token of its sid',
    'ended',
    (history) => {
      const ending = history.calmEnding('logout-token')
      const signIn = history.coveredBy(ending)
      const late = history.change(signIn, { begin: ending.begin - 5, end: ending.end + 5 })
      history.admit(late, ending.end + 50, 'a')
    },
  ],
  [
    'the previous session of a browser survives its new sign-in',
    'ended',
    (history) => {
      const signIn = history.find(
        'sign-in',
        (one) => one.replaces !== undefined && one.signedIn && history.isCalm(one.begin),
      )
      history.admit(history.signIn(signIn.replaces), signIn.end + 20, 'b')
    },
  ],
  [
    'a replica without the store serves an ended session longer than the grace',
    'ended',
    (history) => {
      const fault = history.fault(({ kind }) => kind === 'partition')
      const signIn = history.freshSession(fault.begin - 1_000)
      const longer = history.change(fault, { end: fault.end + 20_000 })
      history.touch(longer.replicas?.[0] ?? '', 'redis-1', 'held', longer)
      const { end } = history.signOut(signIn, fault.begin + 100)
      history.admit(signIn, end + 1_500 + 3_000 + 100, longer.replicas?.[0] ?? '')
    },
    3_000,
  ],
  [
    'a session is served after its idle time',
    'ended',
    (history) => {
      const signIn = history.freshSession(1_000)
      history.admit(signIn, 902_000, 'a')
    },
  ],
  [
    'a session is served a minute after its idle time, in which a clock was off',
    'ended',
    (history) => {
      const signIn = history.freshSession(1_000)
      history.events.push({ type: 'fault', id: 'planted', kind: 'clock', part: 'clock', begin: 2_000, end: 9_000 })
      history.admit(signIn, signIn.end + 900_000 + 60_000, 'a')
    },
  ],
  [
    'one replica admits an ended session once, 40 s later',
    'returned',
    (history) => {
      const refused = history.refusedAsEnded()
      history.admit(history.signIn(refused.session), refused.end + 40_000, 'd')
    },
  ],
  [
    'a session returns that has ended at the provider without a notice',
    'returned',
    (history) => {
      const signIn = history.freshSession(1_000)
      const order = { type: 'ending', id: 'planted', by: 'provider', sid: 'planted', confirmed: false } as const
      history.events.push({ ...order, begin: 2_000, end: 2_001 })
      history.admit(signIn, 3_000, 'c')
      refuse(history, { status: 401, code: 'ERR_UNAUTHENTICATED' }, history.all('request').at(-1))
      history.admit(signIn, 9_000, 'c')
    },
  ],
  [
    'an acknowledged Logout Token is lost in a failover',
    'ending-lost',
    (history) => {
      const failover = history.fault(({ losesWrites }) => losesWrites === true)
      const ending = history
        .all('ending')
        .findLast((one) => one.by === 'logout-token' && one.confirmed && one.end < failover.begin)
      assert.ok(ending)
      const signIn = history.coveredBy(ending)
      const isRefusal = (one: HistoryEvent) =>
        one.type === 'request' && one.session === signIn.id && one.begin > ending.begin
      history.events.splice(0, Infinity, ...history.events.filter((one) => !isRefusal(one)))
      history.admit(signIn, failover.end + 100, 'a')
    },
  ],
  [
    'an application sees the older session of another tab of the same person',
    'identity',
    (history) => {
      const request = history.calmRequest()
      const sid = history.find(
        'sign-in',
        (one) => one.person === request.person && one.identity?.sid !== request.identity?.sid,
      ).identity?.sid
      const identity = { sub: request.person, sid: sid ?? '' }
      history.change(history.receipt(request), { identity })
      history.change(request, { identity })
    },
  ],
  [
    'the response of another request arrives',
    'identity',
    (history) => history.change(history.calmRequest(), { echo: 'r1' }),
  ],
  [
    'a request arrives at another application, whose response is lost',
    'identity',
    (history) => {
      const request = history.calmRequest()
      const application = request.application === 'orders' ? 'files' : 'orders'
      history.change(history.receipt(request), { application })
      const { status: _, identity: __, echo: ___, ...rest } = request
      history.events[history.events.indexOf(request)] = { ...rest, error: 'ECONNRESET' }
      const { begin, end } = request
      history.touch(`browser ${request.browser}`, request.replica, 'reset', { begin, end })
    },
  ],
  [
    'a response names no request',
    'identity',
    (history) => {
      const request = history.calmRequest()
      const { echo: _, ...rest } = request
      history.events[history.events.indexOf(request)] = rest
    },
  ],
  [
    'a request without a cookie is admitted',
    'identity',
    (history) => {
      const { session: _, ...request } = history.calmRequest()
      history.events.push({ ...request, id: 'planted' })
    },
  ],
  [
    'two replicas use a refresh token, and the responses cross',
    'refresh-token',
    (history) => {
      const use = history.find('refresh', ({ begin }) => history.isCalm(begin))
      const first = history.change(use, { begin: use.begin - 5 })
      history.events.push({
        ...first,
        begin: first.begin + 3,
        end: first.end + 3,
        replica: 'd',
        accepted: false,
      } satisfies Refresh)
    },
  ],
  [
    'a refresh token is used again a minute after its rotation',
    'refresh-token',
    (history) => {
      const use = history.find('refresh', ({ begin }) => history.isCalm(begin))
      history.events.push({ ...use, begin: use.end + 60_000, end: use.end + 60_010, accepted: false })
    },
  ],
  [
    'a refresh token is used a third time, after a second use that the network held back',
    'refresh-token',
    (history) => {
      const use = history.find('refresh', ({ begin }) => history.isCalm(begin))
      const again = { ...use, begin: use.end + 1_000, end: use.end + 1_010, replica: 'd', accepted: false }
      history.touch('d', 'provider', 'held', { begin: use.begin - 3_000, end: again.begin })
      history.events.push(again, { ...again, begin: use.end + 60_000, end: use.end + 60_010 })
    },
  ],
  [
    'a form is sent again after the application has reset the connection',
    'form',
    (history) => {
      const request = history.calmRequest('form')
      const { begin, end } = request
      history.touch(request.replica, request.application, 'reset', { begin, end })
      const receipt = history.receipt(request)
      history.events.push({ ...receipt, at: receipt.at + 1 })
    },
  ],
  [
    'an upload is sent again after the application has reset the connection',
    'form',
    (history) => {
      const receipt = history.receipt(history.calmRequest('upload'))
      const { digest: _, ...brokenOff } = receipt
      history.events.push({ ...brokenOff, at: receipt.at - 1 })
    },
  ],
  [
    'a form has a response, and no application received it',
    'form',
    (history) => {
      const receipt = history.receipt(history.calmRequest('form'))
      history.events.splice(history.events.indexOf(receipt), 1)
    },
  ],
  [
    'an upload arrives garbled',
    'content',
    (history) => history.change(history.receipt(history.calmRequest('upload')), { digest: 'other' }),
  ],
  [
    'an upload arrives without its content, and has a response',
    'content',
    (history) => {
      const receipt = history.receipt(history.calmRequest('upload'))
      const { digest: _, ...rest } = receipt
      history.events[history.events.indexOf(receipt)] = rest
    },
  ],
  [
    'the store is unavailable without a fault',
    'reason',
    (history) => refuse(history, { status: 503, code: 'ERR_STORE_UNAVAILABLE' }),
  ],
  [
    'the store is unavailable for one replica because of a fault of another one',
    'reason',
    (history) => {
      const request = history.calmRequest()
      const { begin, end } = request
      for (const replica of ['a', 'b', 'c', 'd'].filter((one) => one !== request.replica))
        history.touch(replica, 'redis-1', 'reset', { begin, end })
      refuse(history, { status: 503, code: 'ERR_STORE_UNAVAILABLE' }, request)
    },
  ],
  [
    'a session waits for the provider because of a replica that did not use it',
    'reason',
    (history) => history.waitForReplica('d'),
  ],
  [
    'the store is unavailable because of a fault that touched nothing',
    'reason',
    (history) => {
      const request = history.calmRequest()
      const { begin, end, replica } = request
      const cut = { type: 'fault', id: 'planted', kind: 'replica-redis', part: 'store' } as const
      history.events.push({ ...cut, replicas: [replica], begin: begin - 500, end: end + 500 })
      refuse(history, { status: 503, code: 'ERR_STORE_UNAVAILABLE' }, request)
    },
  ],
  [
    'the store is unavailable because it was a little late',
    'reason',
    (history) => {
      const request = history.calmRequest()
      const { begin, end, replica } = request
      history.touch(replica, 'redis-1', 'silent', { begin: begin - 500, end })
      refuse(history, { status: 503, code: 'ERR_STORE_UNAVAILABLE' }, request)
    },
  ],
  [
    'the store is unavailable because of a fault between its nodes',
    'reason',
    (history) => {
      const request = history.calmRequest()
      const { begin, end } = request
      history.touch('redis-2', 'redis-1', 'reset', { begin, end })
      refuse(history, { status: 503, code: 'ERR_STORE_UNAVAILABLE' }, request)
    },
  ],
  [
    'the store is unavailable on a machine that was a little busy',
    'reason',
    (history) => {
      const request = history.calmRequest()
      const { begin, end, replica } = request
      history.events.push({ type: 'stall', of: replica, begin: begin - 250, end: end + 250, ms: 400 })
      refuse(history, { status: 503, code: 'ERR_STORE_UNAVAILABLE' }, request)
    },
  ],
  [
    'a session ends, and the only sign-in in its place was refused before',
    'reason',
    (history) => {
      const { begin } = history.calmRequest()
      const signIn = history.freshSession(begin)
      history.admit(signIn, begin + 100, 'a')
      const refused = { ...signIn, id: 'refused', status: 503, code: 'ERR_PROVIDER_UNAVAILABLE', signedIn: false }
      const span = { begin: begin + 200, end: begin + 250 }
      history.touch('a', 'provider', 'reset', span)
      history.events.push({ ...refused, replaces: signIn.id, ...span })
      history.admit(signIn, begin + 300, 'a')
      refuse(history, { status: 401, code: 'ERR_UNAUTHENTICATED' }, history.all('request').at(-1))
    },
  ],
  ['a refusal has no reason', 'reason', (history) => refuse(history, { status: 503 })],
  [
    'the response of an application has another status',
    'reason',
    (history) => history.change(history.calmRequest(), { status: 500 }),
  ],
  [
    'a refusal has a reason that is never true',
    'reason',
    (history) => refuse(history, { status: 500, code: 'ERR_INTERNAL' }),
  ],
  [
    'a session is over without an ending',
    'reason',
    (history) => {
      const { begin, id } = history.freshSession(1_000)
      const request = { ...history.calmRequest(), id: 'planted', session: id, begin: begin + 500, end: begin + 510 }
      history.events.push(request)
      refuse(history, { status: 401, code: 'ERR_UNAUTHENTICATED' }, request)
    },
  ],
  [
    'a browser loses the cookie of a live session, and its person signs in again',
    'reason',
    (history) => {
      const signIn = history.freshSession(1_000)
      history.events.push({ ...signIn, id: 'next', begin: 5_000, end: 5_050 })
    },
  ],
  [
    'a sign-in is refused because of an ending that never was',
    'reason',
    (history) => {
      const signIn = history.freshSession(1_000)
      history.change(signIn, { status: 403, code: 'ERR_SIGN_IN_ENDED', signedIn: false })
    },
  ],
  [
    'a sign-in is refused because of an order that failed minutes before',
    'reason',
    (history) => {
      const { begin, end } = history.fault(({ losesWrites }) => losesWrites === true)
      const order = { type: 'ending', id: 'planted', by: 'logout-token', sid: 'unknown', replica: 'a' } as const
      const failed = { status: 503, code: 'ERR_STORE_UNAVAILABLE', confirmed: false } as const
      history.events.push({ ...order, ...failed, begin, end })
      const signIn = history.freshSession(end + 300_000)
      history.change(signIn, { status: 403, code: 'ERR_SIGN_IN_ENDED', signedIn: false })
    },
  ],
  [
    'a page of an ended session gets a reset connection in place of a refusal',
    'reason',
    (history) => {
      const signIn = history.freshSession(1_000)
      const begin = history.signOut(signIn, 2_000).end + 5_000
      const { identity: _, echo: __, status: ___, ...rest } = history.calmRequest()
      const session = signIn.id
      history.events.push({ ...rest, id: 'planted', session, begin, end: begin + 10, error: 'ECONNRESET' })
    },
  ],
  [
    'an application receives what the policy decision point denies',
    'denied',
    (history) => history.change(history.calmRequest(), { denied: true }),
  ],
  [
    'an application gets its session of another person',
    'own-session',
    (history) => {
      const request = history.calmRequest()
      const receipt = history.change(history.receipt(request), { cookie: 'c' })
      const { application } = receipt
      const identity = { sub: 'dan', sid: 'other' }
      history.events.push({ type: 'own-session', at: 1, request: 'r0', application, cookie: 'c', identity })
      history.events.push({ type: 'logout-call', at: 1, application, cookie: 'c' })
    },
  ],
  ['an application is not told that a session has ended', 'logout-call', (history) => history.endOwnSession()],
  [
    'an application is told a minute later that a session has ended',
    'logout-call',
    (history) => {
      const { application, cookie } = history.endOwnSession()
      history.events.push({ type: 'logout-call', at: 62_000, application, cookie })
    },
  ],
  [
    'a copy of the cookie of a bound session is admitted without the key',
    'device',
    (history) => {
      const begin = history.afterFaults()
      history.admit(history.bind(history.freshSession(begin), begin + 100), begin + 31_000, 'b')
      history.change(history.all('request').at(-1) as Request, { unproved: true })
    },
  ],
  ['an access token is admitted a minute after its time', 'token', (history) => history.call(65_000, 5_000)],
  [
    'an access token is admitted after a Logout Token',
    'token',
    (history) => {
      history.call(8_000, 60_000)
      const order = { type: 'ending', id: 'planted', by: 'logout-token', sub: 'dan', replica: 'a' } as const
      history.events.push({ ...order, status: 200, confirmed: true, begin: 5_000, end: 5_020 })
    },
  ],
  [
    'an application gets a token that was exchanged for another person',
    'token',
    (history) => history.change(history.receipt(history.calmRequest()), { exchanged: { sub: 'dan', aud: 'orders' } }),
  ],
  [
    'a download without its end looks complete',
    'content',
    (history) => {
      const { identity: _, echo: __, ...request } = history.calmRequest('download')
      history.events[history.events.findIndex((event) => event.type === 'request' && event.id === request.id)] = {
        ...{ ...request, kind: 'page', code: 'ERR_FORBIDDEN', denied: true },
        incomplete: true,
      }
      history.events.splice(
        history.events.findIndex((event) => event.type === 'receipt' && event.request === request.id),
        1,
      )
    },
  ],
  [
    'a session is admitted after its key was taken away',
    'ended',
    (history) => {
      const { begin, end } = history.fault(({ endsSessions }) => endsSessions === true)
      history.admit(history.freshSession(begin - 1_000), end + 2_500, 'b')
    },
  ],
  [
    'a session is admitted after a signal',
    'ended',
    (history) => {
      const signIn = history.freshSession(1_000)
      const order = { type: 'ending', id: 'planted', by: 'signal', sub: 'dan', replica: 'a' } as const
      history.events.push({ ...order, status: 202, confirmed: true, begin: 2_000, end: 2_020 })
      history.admit(signIn, 2_030, 'c')
    },
  ],
  [
    'an application fails, and another one is blamed for it',
    'reason',
    (history) => {
      const request = history.calmRequest('form')
      history.change(history.receipt(history.calmRequest('upload')), { failed: true })
      refuse(history, { status: 502, code: 'ERR_UPSTREAM_UNREACHABLE' }, request)
    },
  ],
  [
    'a reload breaks a connection',
    'reason',
    (history) => {
      const request = history.calmRequest()
      const { begin, end } = request
      history.events.push({ type: 'fault', id: 'planted', kind: 'reload', begin, end })
      const { status: _, identity: __, echo: ___, ...rest } = request
      history.events[history.events.indexOf(request)] = { ...rest, error: 'ECONNRESET' }
    },
  ],
  [
    'a stream stays open 2 s longer than it may',
    'stream',
    (history) => {
      const stream = history.find('stream', (one) => one.reason === 'gateway' && history.isCalm(one.end))
      history.change(stream, { end: stream.end + 2_000, reason: 'browser' })
    },
  ],
  [
    'a stream is open already too long when a fault begins',
    'stream',
    (history) => {
      const signIn = history.freshSession(1_000)
      const { end } = history.signOut(signIn, 2_000)
      history.keepOpen(signIn, 1_500, end + 6_000)
      history.touch('c', 'redis-1', 'reset', { begin: end + 4_000, end: end + 4_500 })
    },
  ],
  [
    'a stream stays open, and delivers nothing any more',
    'stream',
    (history) => {
      const stream = history.keepOpen(history.freshSession(1_000), 1_500, 18_000)
      history.change(stream, { lastMessage: 3_000 })
    },
  ],
  [
    'a stream closes without a reason',
    'stream',
    (history) => {
      const isEnding = (at: number) => history.all('ending').some(({ begin }) => Math.abs(begin - at) < 2_000)
      const stream = history.find(
        'stream',
        ({ reason, end }) => reason === 'browser' && history.isCalm(end) && !isEnding(end),
      )
      history.change(stream, { reason: 'gateway' } satisfies Partial<Stream>)
    },
  ],
  [
    'one replica completes no sign-out after the last fault',
    'liveness',
    (history) => {
      const atB = history
        .all('ending')
        .filter(({ by, replica, confirmed }) => by === 'sign-out' && replica === 'b' && confirmed)
      for (const ending of atB) history.change(ending, { replica: 'a' })
    },
  ],
  [
    'a response takes 6 s without a fault',
    'liveness',
    (history) => {
      const request = history.all('request').findLast((one) => one.identity !== undefined) as Request
      history.change(request, { end: request.end + 6_000 })
    },
  ],
  [
    'a request hangs for 17 s while another replica has a fault',
    'liveness',
    (history) => {
      history.admit(history.freshSession(1_000), 1_100, 'c')
      const request = history.all('request').at(-1) as Request
      history.change(request, { end: request.begin + 17_000 })
      history.touch('a', 'redis-1', 'reset', { begin: 5_000, end: 6_000 })
    },
  ],
  [
    'a sign-out takes 6 s without a fault',
    'liveness',
    (history) => {
      const signOut = history.all('ending').findLast(({ by }) => by === 'sign-out') as Ending
      history.change(signOut, { begin: signOut.end - 6_000 })
    },
  ],
  [
    'keys in the store grow slowly',
    'leak',
    (history) => {
      const last = history.all('sample').at(-1) as EventOf<'sample'>
      history.change(last, { keys: 44 })
      for (let keys = 4; keys < 44; keys += 1) history.events.push({ ...last, at: keys * 1_000, keys })
    },
  ],
  [
    'a worker that replaced another one has grown by 100 MiB',
    'leak',
    (history) => {
      const last = history.all('sample').findLast(({ of }) => of === 'a-1') as EventOf<'sample'>
      history.change(last, { of: 'a-2', memory: (last.memory ?? 0) + 200 * 1024 ** 2 })
    },
  ],
  [
    'a worker has grown by 60 MiB after the first half of the run',
    'leak',
    (history) => {
      const last = history.all('sample').findLast(({ of }) => of === 'a-1') as EventOf<'sample'>
      history.change(last, { memory: (last.memory ?? 0) + 60 * 1024 ** 2 })
    },
  ],
  [
    'a worker keeps 20 MiB of objects',
    'leak',
    (history) => {
      const last = history.all('sample').findLast(({ of }) => of === 'a-1') as EventOf<'sample'>
      history.change(last, { used: (last.used ?? 0) + 20 * 1024 ** 2 })
    },
  ],
  [
    'a session is served after the provider has rejected its refresh token',
    'ended',
    (history) => history.admit(...history.rejectedRefresh(1_000), 'a'),
  ],
  [
    'a stream delivers a message of another one',
    'identity',
    (history) => {
      const stream = history.find('stream', ({ begin }) => history.isCalm(begin))
      history.change(stream, { otherMessage: '{"sub":"ben","sid":"other"}' })
    },
  ],
  [
    'a worker ends by itself',
    'liveness',
    (history) => {
      const death = { type: 'death', at: history.calmRequest().end, replica: 'b', reason: 'SIGABRT' } as const
      history.events.push({ ...death, worker: 17 })
    },
  ],
  [
    'a worker keeps its open files',
    'leak',
    (history) => history.change(history.all('sample').at(-2) as EventOf<'sample'>, { files: 90 }),
  ],
  [
    'an application receives a request that no browser sent',
    'complete',
    (history) => {
      const receipt = history.receipt(history.calmRequest())
      history.events.push({ ...receipt, request: '' })
    },
  ],
  [
    'the history has an ending of a session that it does not have',
    'complete',
    (history) => history.signOut({ ...history.freshSession(1_000), id: 'unknown' }, 2_000),
  ],
  [
    'a lost Logout Token has its 200 while processes wait for a processor',
    'ended',
    (history) => {
      const ending = history.calmEnding('logout-token')
      const span = { begin: ending.begin - 200, end: ending.end + 300 }
      history.events.push({ type: 'stall', of: 'world', ...span, ms: 400 })
      history.admit(history.coveredBy(ending), ending.end + 100, 'a')
    },
  ],
  [
    'a replica ends by itself',
    'liveness',
    (history) => history.events.push({ type: 'death', at: history.calmRequest().end, replica: 'b', reason: 'SIGABRT' }),
  ],
]

function refuse(history: Planted, outcome: Pick<Request, 'status' | 'code'>, request = history.calmRequest()): void {
  const { identity: _, echo: __, code: ___, ...rest } = request
  const receipt = history.all('receipt').find((one) => one.request === request.id)
  if (receipt !== undefined) history.events.splice(history.events.indexOf(receipt), 1)
  history.events[history.events.indexOf(request)] = { ...rest, ...outcome }
}

for (const [what, property, plant, grace] of plants)
  test(`the checker finds that ${what}`, () => {
    for (const seed of [11, 12]) {
      const history = new Planted(seed, grace)
      plant(history)
      const [finding, ...others] = findingsOf(history.events)

      assert.equal(finding?.property, property, `seed ${seed}`)
      assert.ok(finding.events.length > 0)
      assert.deepEqual(
        others.filter((other) => other.property !== property),
        [],
      )
    }
  })
