import { siteOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { clientOf } from '../core/addresses.ts'
import type { MisuseLog } from '../device/misuse.ts'
import { type Admission, misuseIn } from '../gate/admission.ts'
import { type Admit, createAdmit } from '../gate/admit.ts'
import type { AdmitParts } from '../gate/context.ts'
import { identify } from '../gate/identify.ts'
import { auditCaller, auditDenial, auditObserved, type Refusal, refusalOf, type Refused } from '../gate/refusal.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { Incoming } from '../http/response.ts'
import { SignedIdentities } from '../identity/signed/signed-identity.ts'
import { Shares } from '../limits/fair-queue.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import type { Audit } from '../observe/audit.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { connectionsFor } from '../provider/outbound.ts'
import type { Pass } from '../proxy/parts.ts'
import { hasSeveral, withOneSession } from '../session/cookies/cookie.ts'
import { AccessTokens } from '../tokens/access-tokens.ts'
import { type Exchanged, ExchangedTokens } from '../tokens/exchanged-tokens.ts'
import { ServiceAccounts } from '../tokens/service-accounts.ts'
import type { GenerationParts } from './parts.ts'
import type { Refusals } from './responses.ts'

/** Builds the decision about requests, with all that it asks. */
export function createGate(config: GatewayConfig, parts: GenerationParts) {
  const { realms, signingKeys, cookie, routes, clock, log } = parts
  const admitOne = createAdmit(config, {
    ...callers(config, parts),
    ...{ routes, clock, log },
    site: siteOf(config),
    expireFormer: (facts) => realms.all.flatMap((realm) => realm.cookie.expireFormer(facts.cookie, facts.host)),
    identify: (header, upstream) => identify(header, realms.ofUpstream(upstream)),
    identities: new SignedIdentities(config, { keys: signingKeys, clock }),
    isStrict: cookie.isStrict,
  })
  const oneSessionOf = (facts: RequestFacts) => withOneSession({ ...facts, path: facts.target.path }, realms.all)
  const admitWithOne = async (facts: RequestFacts): Promise<Admission> => {
    const { cookie: one, expireAdded } = await oneSessionOf(facts)
    const admission = await admitOne({ ...facts, cookie: one })
    if (admission.kind !== 'pass' || expireAdded.length === 0) return admission
    return { ...admission, expire: () => [...expireAdded, ...(admission.expire?.() ?? [])] }
  }
  const admit: Admit = (facts) => (hasSeveral(facts.cookie, realms.all) ? admitWithOne(facts) : admitOne(facts))
  /** The facts, with one session cookie: see `withOneSession`. */
  const withOneCookie = async (facts: RequestFacts): Promise<RequestFacts> =>
    hasSeveral(facts.cookie, realms.all) ? { ...facts, cookie: (await oneSessionOf(facts)).cookie } : facts
  return { admit, withOneCookie }
}

/** Those who have credentials of their own, and the tokens that upstreams get in exchange. */
function callers(config: GatewayConfig, parts: GenerationParts) {
  const { realms, endings, tokenEndings, accountLimits, clock, log } = parts
  const accessTokens = new AccessTokens({
    ...{ clock, endings: tokenEndings },
    introspections: new Shares(connectionsFor.introspections),
  })
  const exchangedTokens = new ExchangedTokens({ clock, log })
  const accounts = new ServiceAccounts({ clock, limits: accountLimits, issuer: config.externalUrl.origin })
  if (config.upstreams.some((upstream) => upstream.accessTokens !== undefined)) {
    endings.onEnded((keys) => tokenEndings.noteEnded(keys))
    endings.onLogoutOrder((order) => tokenEndings.noteOrder(order))
  }
  if (config.upstreams.some((upstream) => upstream.tokenExchange !== undefined))
    endings.onEnded((keys) => exchangedTokens.noteEnded(keys))
  return {
    identifyToken: (token, upstream, accepts, client) =>
      accessTokens.identify(token, upstream, accepts, realms.ofUpstream(upstream), clientOf(client)),
    identifyAccount: (credentials, upstream, accepts, client) =>
      accounts.identify(credentials, upstream, accepts, clientOf(client)),
    exchange: (subject, upstream, wanted) => {
      const realm = realms.ofUpstream(upstream).find(({ audience }) => audience === subject.audience)
      return realm === undefined ? unknownProvider : exchangedTokens.of(subject, upstream, wanted, realm.provider)
    },
  } satisfies Pick<AdmitParts, 'identifyToken' | 'identifyAccount' | 'exchange'>
}

const unknownProvider: Exchanged = {
  kind: 'unavailable',
  code: 'ERR_TOKEN_EXCHANGE',
  why: 'the session is at a provider of another upstream',
}

export interface DecisionsParts {
  readonly admit: Admit
  readonly audit: Audit
  readonly misuseLog: Pick<MisuseLog, 'note'>
  readonly memory: Pick<MemoryBudget, 'admits'>
}

type Decided = Omit<Incoming, 'res'>

/** Has requests decided about, and records the decisions. */
export class Decisions {
  readonly #parts: DecisionsParts
  readonly #refusals: Refusals

  constructor(parts: DecisionsParts, refusals: Refusals) {
    this.#parts = parts
    this.#refusals = refusals
  }

  /** Calls `done` at once when nothing has to be waited for. */
  decide({ facts, record }: Decided, done: (admission: Admission) => void, failed: (error: unknown) => void): void {
    const decided = (admission: Admission) => {
      const misuse = misuseIn(admission)
      if (misuse !== undefined) this.#parts.misuseLog.note(misuse, facts.skippedSession, record.cause)
      done(admission)
    }
    try {
      const admission = this.#parts.admit(facts)
      if (admission instanceof Promise) admission.then(decided).catch(failed)
      else decided(admission)
    } catch (error) {
      failed(error)
    }
  }

  /**
   * Whether there is memory for the request. Only strangers' requests for applications are
   * rejected. A rejected Logout Token would leave a session open.
   */
  hasMemoryFor({ req, facts }: Decided, pass?: Pass): boolean {
    const { clientAddress } = facts.forwarded
    const party = pass?.session ?? (pass?.caller === undefined ? undefined : `${pass.caller} ${clientAddress}`)
    return this.#parts.memory.admits(req.socket, clientAddress, party)
  }

  /** The upstream gets the request. */
  recordPass(record: RequestRecord, { upstream, session, caller, observed }: Pass): void {
    record.upstream = upstream.name
    record.session = session
    record.caller = caller
    if (observed !== undefined) auditObserved(this.#parts.audit, record, observed)
  }

  /**
   * Records why a request is refused, in the audit log or in the log. A missing sign-in is the
   * usual case, so callers that can expect it do not record it.
   */
  recordRefusal({ req, record }: Decided, admission: Refused): Refusal {
    const refusal = refusalOf(admission)
    const { code, why } = refusal
    if ('rule' in admission) auditDenial(this.#parts.audit, record, { ...admission, code })
    else if (admission.kind === 'caller_refused') auditCaller(this.#parts.audit, record, admission)
    else this.#refusals.log(req, record, code, why)
    return refusal
  }
}
