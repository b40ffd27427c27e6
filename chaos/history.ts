// The history of a chaos run: what people, applications, the provider and the faults did, as JSON
// lines. The world writes it while it runs, and the checker reads it afterwards.
import { createWriteStream, readFileSync } from 'node:fs'
import process from 'node:process'
import { finished } from 'node:stream/promises'

/**
 * Milliseconds of the one clock of all events: CLOCK_MONOTONIC, which all processes of a machine
 * share, and which no clock fault moves.
 */
export function now(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000
}

/**
 * An operation as its caller saw it: before it sent the first byte, and after it had the last byte
 * of the response, or the error. What the operation did, it did between both. Only an operation
 * that began after another one had ended is certain to be later.
 */
interface Operation {
  readonly begin: number
  readonly end: number
}

/** Who an application sees in the identity headers of a request. */
export interface Identity {
  readonly sub: string
  /** The `sid` claim of the ID Token. */
  readonly sid: string
}

/**
 * What a client got. Without `status`, the connection failed or closed before the response was
 * complete, which says nothing about what the gateway did.
 */
interface Outcome {
  readonly status?: number
  /**
   * The error code of a response by the gateway itself. A redirect to the sign-in, and the page
   * before it, is ERR_UNAUTHENTICATED. Absent: the operation succeeded, or the response is the
   * application's.
   */
  readonly code?: string
  /** Of the connection, for the reader. Present exactly if `status` is absent. */
  readonly error?: string
}

/** First event: what runs. */
export interface Run {
  readonly type: 'run'
  readonly at: number
  readonly seed: number
  /** The names of all replicas. Other events use these names. */
  readonly replicas: readonly string[]
  readonly persons: readonly string[]
  /** `session.store_outage_grace` in milliseconds. */
  readonly grace: number
  /** `session.idle_timeout` and `session.absolute_timeout` in milliseconds. */
  readonly idleTimeout: number
  readonly absoluteTimeout: number
  /** How many worker processes each replica has. */
  readonly workers?: number
  /** How long an access token lives, in milliseconds. */
  readonly accessTokenLifetime?: number
  /** Milliseconds since 1970 at `at`, by the clock of the machine. */
  readonly wallClock?: number
}

/**
 * One pass through the code flow, from the click to the response of the callback. Its `id` is also
 * the name of the session that it began.
 */
export interface SignIn extends Operation, Outcome {
  readonly type: 'sign-in'
  readonly id: string
  readonly person: string
  /** A browser has one jar of cookies. Its tabs share it. */
  readonly browser: string
  /** The replica that got the callback, or, without one, the last request of the sign-in. */
  readonly replica: string
  /** Whether the browser has a session cookie from the callback. */
  readonly signedIn: boolean
  /** As the provider issued it. Absent where the provider issued no ID Token. */
  readonly identity?: Identity
  /** SHA-256 of the authorization code, which names the tokens of the session. */
  readonly grant?: string
  /** The session whose cookie the browser sent with the callback: this sign-in ends it. */
  readonly replaces?: string
}

/** A request of a browser that is not the gateway's own endpoint. */
export interface Request extends Operation, Outcome {
  readonly type: 'request'
  /** The browser sends it in a header, and applications record it. */
  readonly id: string
  readonly kind: 'page' | 'script' | 'download' | 'upload' | 'form' | 'stream' | 'websocket' | 'call'
  readonly person: string
  readonly browser: string
  /** The session whose cookie the browser sent. Absent: no session cookie. */
  readonly session?: string
  /** The access token that a program sent in place of a session. */
  readonly token?: string
  readonly replica: string
  readonly application: string
  /**
   * The identity that the application echoed in its response. Exactly the responses of applications
   * have it.
   */
  readonly identity?: Identity
  /** The request that the response names: the application echoes the `id` that it received. */
  readonly echo?: string
  /** The submission that the person intended: a person who sends a form anew uses another one. */
  readonly form?: string
  /** SHA-256 of the content that the browser sent. */
  readonly digest?: string
  /** The policy decision point denies it. */
  readonly denied?: true
  /** It sent a form that the gateway had kept. */
  readonly kept?: true
  /** It had a copy of a cookie of an ended session, on a connection of its own. */
  readonly copy?: true
  /** The response counted as complete, and had less content than the application sends. */
  readonly incomplete?: true
  /**
   * Its session may be bound to a key of the browser, and the request had no proof of the key: it
   * came from somebody with a copy of the session cookie, or the proof had failed.
   */
  readonly unproved?: true
}

/** A browser proved, or tried to prove, that it has the key of its session. */
export interface Proof extends Operation, Outcome {
  readonly type: 'proof'
  readonly id: string
  /** `registration`: of a new key. */
  readonly purpose: 'registration' | 'renewal'
  readonly person: string
  readonly browser: string
  readonly session: string
  /** The replica that got the last request of the proof. */
  readonly replica: string
  /** Whether the browser has got the cookie of the proof. */
  readonly proved: boolean
}

/** The provider issued an access token to a program that acts for a person. */
export interface Token extends Identity {
  readonly type: 'token'
  readonly id: string
  readonly at: number
  readonly expires: number
}

/** An application received a request. */
export interface Receipt {
  readonly type: 'receipt'
  readonly at: number
  /** The `id` of the request. */
  readonly request: string
  readonly application: string
  readonly identity: Identity
  readonly form?: string
  /** SHA-256 of the content. Absent unless the application received all of the content. */
  readonly digest?: string
  /** The cookie of a session of the application. */
  readonly cookie?: string
  /** The application failed: it broke off its response, or sent none. */
  readonly failed?: true
  /** The token that the gateway got for this application in exchange. Empty: it has none. */
  readonly exchanged?: { readonly sub: string; readonly aud: string }
}

/** An application began a session of its own, in the response to a request. */
export interface OwnSession {
  readonly type: 'own-session'
  readonly at: number
  readonly request: string
  readonly application: string
  readonly cookie: string
  readonly identity: Identity
}

/** The gateway told an application that the session with this cookie is over (`logout.call`). */
export interface LogoutCall {
  readonly type: 'logout-call'
  readonly at: number
  readonly application: string
  readonly cookie: string
}

/** An order to end sessions, and each of its attempts by itself. */
export interface Ending extends Operation, Outcome {
  readonly type: 'ending'
  readonly id: string
  /**
   * `sign-out`: at the gateway, by a person. `logout-token`, and `signal` (a security event): the
   * `sid` has already ended at the provider. `administrator`: the administration API or the command
   * line. `provider`: the provider ended the session without a notice, and no longer accepts its
   * tokens; it is not confirmed. The checker knows of new sign-ins and of timeouts by itself.
   */
  readonly by: 'sign-out' | 'logout-token' | 'signal' | 'administrator' | 'provider'
  /** What it covers: exactly one of them. */
  readonly session?: string
  readonly sid?: string
  readonly sub?: string
  /** The replica that got the order. */
  readonly replica?: string
  /** The same Logout Token or signal was confirmed before: it ends nothing. */
  readonly replayed?: true
  /**
   * Whether the gateway said that the sessions have ended: 200, 202, or the redirect of a sign-out.
   */
  readonly confirmed: boolean
}

/** The token endpoint of the provider got a refresh token. */
export interface Refresh extends Operation {
  readonly type: 'refresh'
  /** SHA-256 of the refresh token, and of the one that replaces it. */
  readonly token: string
  readonly next?: string
  readonly sid: string
  /** The `grant` of the sign-in whose token it is. Absent where the provider does not know it. */
  readonly grant?: string
  /** The replica that used it, where the provider knows it. */
  readonly replica?: string
  readonly accepted: boolean
  /** Whether the response was `invalid_grant`. */
  readonly isRejected?: boolean
  /** Whether the whole response was written, and the connection was open until then. */
  readonly answered: boolean
}

/** The provider returned claims for the access token of a session. */
export interface ClaimsRead {
  readonly type: 'claims-read'
  readonly at: number
  /** See `Refresh`. */
  readonly grant: string
}

/** An event stream or a WebSocket that was opened, from its first to its last byte. */
export interface Stream extends Operation {
  readonly type: 'stream'
  /** The request that opened it. */
  readonly request: string
  readonly session: string
  readonly replica: string
  readonly application: string
  /** When the last message of the application arrived. */
  readonly lastMessage?: number
  /** The first message that differs from the one that opened the stream. */
  readonly otherMessage?: string
  readonly reason: 'gateway' | 'browser' | 'error'
  /** The code of the WebSocket's Close frame. */
  readonly code?: number
}

/** A fault, from before it was made until after it was healed. What it causes may last longer. */
export interface Fault extends Operation {
  readonly type: 'fault'
  readonly id: string
  /** Such as `kill`, `suspend`, `reload`, `failover`, `partition`, `slow-link`: for the reader. */
  readonly kind: string
  /**
   * What fails: the process of a `replica`, its link to `clients`, the `store`, `provider`,
   * `application` or policy `decision` point or the link to it, the `clock` of a replica. Absent:
   * nothing may fail because of it, such as a reload or a new key. Only a fault of a `replica` or a
   * `clock` excuses something by itself. What another one touched, the proxies say.
   */
  readonly part?: Part
  /** The replicas concerned. Absent: all. */
  readonly replicas?: readonly string[]
  /** The applications concerned. Absent: all. */
  readonly applications?: readonly string[]
  /** Whether the store may have lost writes that it had acknowledged. */
  readonly losesWrites?: boolean
  /** Whether it ended all sessions that were sealed with a key of before. */
  readonly endsSessions?: boolean
  /** The world did not make it, but noticed it, such as another primary of the store. */
  readonly observed?: true
}

export type Part = 'replica' | 'clients' | 'store' | 'provider' | 'application' | 'decision' | 'clock'

/** What a proxy saw on the connections between two parties. */
export interface Touch extends Operation {
  readonly type: 'touch'
  /** The party that opened the connection: a replica, a browser, or a node of the store. */
  readonly from: string
  readonly to: string
  /** What `to` is; `clients` where it is a replica. */
  readonly part: Part
  /**
   * `held`: bytes waited in the proxy. `silent`: bytes arrived, and the other party sent none back.
   * `reset`: by the proxy. `refused`: nothing listened. `closed`: by the other party, which owed a
   * response or never closes idle connections. `error`: the store replied with an error.
   */
  readonly how: 'held' | 'silent' | 'reset' | 'refused' | 'closed' | 'error'
  /** The error of the store. */
  readonly code?: string
}

/** A process had to wait for a processor, as the kernel or the delay of its timers says. */
export interface Stall extends Operation {
  readonly type: 'stall'
  /** A replica, or `world`: the process of browsers, proxies, provider and applications. */
  readonly of: string
  /** How long it waited within this time, in ms. */
  readonly ms: number
}

/** A replica, or one of its workers, ended without an order to end. */
export interface Death {
  readonly type: 'death'
  readonly at: number
  readonly replica: string
  readonly reason: string
  /** Its process, where it was a worker. A fault may have killed it. */
  readonly worker?: number
}

/** What a process uses. */
export interface Sample {
  readonly type: 'sample'
  readonly at: number
  /** The replica with its worker, or `store`. Another process has another name. */
  readonly of: string
  readonly replica?: string
  /** No person was signed in, no exchange was open, and no fault was active or just healed. */
  readonly calm: boolean
  /** Resident bytes. */
  readonly memory?: number
  /** Bytes of objects and of memory that belongs to them, in V8, after a garbage collection. */
  readonly used?: number
  readonly files?: number
  /** Keys in Redis that do not expire within the minutes of the run. */
  readonly keys?: number
}

/** The world broke off: what follows is missing. */
export interface Broken {
  readonly type: 'broken'
  readonly at: number
  readonly reason: string
}

/** Last event. Without it, the history is incomplete. */
export interface End {
  readonly type: 'end'
  readonly at: number
}

/** An operation that a person, the provider or an administrator expects to succeed. */
export type Attempt = Request | SignIn | Ending | Proof

export type HistoryEvent =
  | Run
  | SignIn
  | Request
  | Receipt
  | OwnSession
  | LogoutCall
  | Ending
  | Proof
  | Token
  | Refresh
  | ClaimsRead
  | Stream
  | Fault
  | Touch
  | Stall
  | Death
  | Sample
  | Broken
  | End

export interface HistoryWriter {
  record(event: HistoryEvent): void
  /** Resolves when all events are in the file. */
  close(): Promise<void>
}

/** Writes a history into a new file, a line for each event, in the order of their ends. */
export function writeHistory(path: string): HistoryWriter {
  const file = createWriteStream(path, { flags: 'wx' })
  return {
    record: (event) => void file.write(`${JSON.stringify(event)}\n`),
    close: () => finished(file.end()),
  }
}

/**
 * Reads a history. A last line without its end, from a writer that was killed, is left
 * out.
 * @throws Error when it is no history
 */
export function readHistory(path: string): HistoryEvent[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.slice(0, -1).map((line, at) => {
    try {
      return JSON.parse(line) as HistoryEvent
    } catch {
      throw new Error(`${path} is no history: line ${at + 1} is not JSON.`)
    }
  })
}
