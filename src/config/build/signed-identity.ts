import { parseClaimPath } from '../../core/claims.ts'
import type { Setting } from '../document/report.ts'
import type { SignedClaim, SignedIdentityConfig } from '../model/upstream.ts'
import type { UpstreamSettings } from '../settings.ts'
import { parseEach } from './build-context.ts'
import { hintForClaims, type ShortNames, withLongName } from './claim-names.ts'
import type { HeaderContext } from './headers.ts'

/** The claims that the gateway itself writes into a signed identity. */
const ownClaims: ReadonlySet<string> = new Set(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'])

/** `upstream` is the name of the upstream. Returns `undefined` when it gets no signed identity. */
export function readSignedIdentity(
  settings: UpstreamSettings['signedIdentity'],
  at: Setting,
  upstream: string,
  { claims }: HeaderContext,
): SignedIdentityConfig | undefined {
  if (settings === false) return undefined
  return {
    ...settings,
    audience: settings.audience ?? upstream,
    claims: parseEach(settings.claims, at.below('claims'), (text) => readClaim(text, claims), hintForClaims),
  }
}

function readClaim(text: string, names: ShortNames): SignedClaim {
  const path = parseClaimPath(text)
  // The quotes around a name with special characters are no part of it.
  const name = path.length === 1 ? String(path[0]) : text
  if (ownClaims.has(name)) throw new SyntaxError(`is a claim that the gateway writes itself: remove ${name}`)
  return { name, path: withLongName(path, names) }
}
