import assert from 'node:assert/strict'
import type { ProviderConfig } from '../../src/config/model/provider.ts'
import type { UpstreamConfig } from '../../src/config/model/upstream.ts'
import { systemClock } from '../../src/core/clock.ts'
import type { SessionKey } from '../../src/core/names.ts'
import { trialIdentities } from '../../src/explain/trial.ts'
import type { Admission } from '../../src/gate/admission.ts'
import { createAdmit } from '../../src/gate/admit.ts'
import type { AdmitParts } from '../../src/gate/context.ts'
import { type Identity, type RealmOfPerson, signedIn } from '../../src/gate/identify.ts'
import { createRouteTable } from '../../src/gate/rules/route-table.ts'
import { TrustedProxies } from '../../src/http/forwarded.ts'
import { requestFacts } from '../../src/http/request-facts.ts'
import { unbound } from './rules/configs.ts'

export const realm: RealmOfPerson = {
  prefix: '/.gatehouse/',
  clockToleranceMs: 30_000,
  cookie: { expireAll: () => ['__Host-gatehouse=; Max-Age=0'], expiry: { wherever: () => [] }, isOfFrame: () => false },
}

export const nobody: Identity = { kind: 'anonymous', realm, staleCookie: false }

/** A signed-in person with these groups. */
export function person(groups: readonly string[] = []): Identity {
  const record = {
    ...{ iss: 'https://id.example.com', sub: 'jane', created_at: 0, absolute_expires_at: 1 },
    ...{ tokens: { access_token: 'a', id_token: 'i', obtained_at: 0 }, userinfo_read_at: 0 },
    claims: { sub: 'jane', groups: [...groups] },
  }
  return signedIn({ key: 'tag:jane' as SessionKey, audience: '', version: 1, bytes: 100, record }, realm)
}

interface Sent {
  readonly method?: string
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The decision about a request for this upstream. It needs no promise. */
export function admissionOf(
  upstream: UpstreamConfig,
  { method = 'GET', url = '/', headers = {} }: Sent,
  parts: Partial<AdmitParts>,
): Admission {
  const admit = createAdmit(
    { upstreams: [upstream], reservedPrefix: '/.gatehouse/', session: unbound, providers: [] },
    {
      routes: createRouteTable([upstream]),
      identify: () => nobody,
      clock: systemClock,
      identities: trialIdentities({
        ...{ externalUrl: new URL('https://orders.example.com'), providers: [{} as ProviderConfig] },
      }),
      isStrict: false,
      log: { debug() {}, info() {}, warn() {}, error() {}, announce() {} },
      ...parts,
    },
  )
  const received = { method, url, headers: { host: 'orders.example.com', ...headers }, socket: {} }
  const admission = admit(requestFacts(received, new TrustedProxies([]), ''))
  assert.ok(!(admission instanceof Promise), 'the decision needs no promise')
  return admission
}
