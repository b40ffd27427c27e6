import { parseClaimPath } from '../../core/claims.ts'
import { below } from '../document/report.ts'
import type { SignedClaim, SignedIdentityConfig } from '../model.ts'
import type { UpstreamSettings, UpstreamSignedIdentitySettings } from '../settings.ts'
import { present, readDuration } from './build-context.ts'
import { hintForClaims, type ShortNames, withLongName } from './claim-names.ts'
import type { HeaderContext } from './headers.ts'

const defaults: UpstreamSignedIdentitySettings = {
  header: 'X-Gatehouse-Identity',
  lifetime: '5m',
  claims: [],
  algorithm: 'ES256',
}

/** The claims that the gateway itself writes into a signed identity. */
const ownClaims: ReadonlySet<string> = new Set(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'])

/** `upstream` is the name of the upstream. Returns `undefined` when it gets no signed identity. */
export function readSignedIdentity(
  settings: UpstreamSettings['signed_identity'],
  at: string,
  upstream: string,
  { report, claims }: HeaderContext,
): SignedIdentityConfig | undefined {
  if (settings === false) return undefined
  const { header, audience, lifetime, claims: names, algorithm } = settings === true ? defaults : settings
  return {
    header,
    audience: audience ?? upstream,
    lifetimeMs: readDuration(lifetime, below(at, 'lifetime'), '30s', '1h', report),
    claims: present(names).flatMap(([index, text]) =>
      report.parse(below(below(at, 'claims'), index), [], () => [readClaim(text, claims)], hintForClaims(text)),
    ),
    algorithm,
  }
}

function readClaim(text: string, names: ShortNames): SignedClaim {
  const path = parseClaimPath(text)
  // The quotes around a name with special characters are no part of it.
  const name = path.length === 1 ? String(path[0]) : text
  if (ownClaims.has(name)) throw new SyntaxError(`is a claim that the gateway writes itself: remove ${name}`)
  return { name, path: withLongName(path, names) }
}
