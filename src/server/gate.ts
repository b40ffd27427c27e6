import { siteOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { clientOf } from '../core/addresses.ts'
import type { Admission } from '../gate/admission.ts'
import { type Admit, createAdmit } from '../gate/admit.ts'
import type { AdmitParts } from '../gate/context.ts'
import { identify } from '../gate/identify.ts'
import type { RouteTable } from '../gate/rules/route-table.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { SignedIdentities } from '../identity/signed/signed-identity.ts'
import { Shares } from '../limits/fair-queue.ts'
import { connectionsFor } from '../provider/outbound.ts'
import { hasSeveral, withOneSession } from '../session/cookies/several-cookies.ts'
import { AccessTokens } from '../tokens/access-tokens.ts'
import { type Exchanged, ExchangedTokens } from '../tokens/exchanged-tokens.ts'
import { ServiceAccounts } from '../tokens/service-accounts.ts'
import type { SessionParts } from './session-parts.ts'
import type { SharedParts } from './shared-parts.ts'

export interface Gate {
  readonly admit: Admit
  /** The facts, with one session cookie: see `withOneSession`. */
  readonly withOneCookie: (facts: RequestFacts) => RequestFacts | Promise<RequestFacts>
}

/** Builds the decision about requests, with all that it asks. */
export function createGate(
  config: GatewayConfig,
  parts: SharedParts & SessionParts & { readonly routes: RouteTable },
): Gate {
  const { realms, expiredCookies, signingKeys, cookie, routes, clock, log } = parts
  const admitOne = createAdmit(config, {
    ...callers(config, parts),
    ...{ routes, clock, log },
    site: siteOf(config),
    expireFormer: (facts) => realms.all.flatMap((realm) => realm.cookie.expireFormer(facts.cookie, facts.host)),
    identify: (header, upstream) => identify(header, realms.ofUpstream(upstream), expiredCookies),
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
  return {
    admit: (facts) => (hasSeveral(facts.cookie, realms.all) ? admitWithOne(facts) : admitOne(facts)),
    withOneCookie: async (facts) =>
      hasSeveral(facts.cookie, realms.all) ? { ...facts, cookie: (await oneSessionOf(facts)).cookie } : facts,
  }
}

/** Those who have credentials of their own, and the tokens that upstreams get in exchange. */
function callers(config: GatewayConfig, parts: SharedParts & SessionParts) {
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
