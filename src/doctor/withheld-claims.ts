import { claimsIn, claimsOf } from '../config/claims-in-use.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { providerKind } from '../config/provider-kind.ts'
import { type ClaimPath, type Claims, isWithheld } from '../core/claims.ts'
import { errorRow } from '../core/error-codes.ts'
import { type Finding, ok, warning } from './finding.ts'

/** The claims of these, which the provider has withheld, that an upstream needs. */
export function withheldFindings(upstream: UpstreamConfig, claims: Claims = {}): Finding[] {
  const names = namesOf(claimsNeeded(upstream).filter((path) => isWithheld(claims, path)))
  if (names.length === 0) return []
  return [
    warning('upstream.claims_withheld', `the provider has withheld ${names.join(', ')} of these claims`, {
      why: 'rules that read such a claim deny access, also with none_of and not (ERR_CLAIM_WITHHELD); its headers are left out',
      todo: errorRow('ERR_CLAIM_WITHHELD').todo,
    }),
  ]
}

/** What a provider withholds from people in many groups, where the upstreams need it. */
export function overageFindings({ issuer }: ProviderConfig, upstreams: readonly UpstreamConfig[]): Finding[] {
  const needsGroups = upstreams.flatMap(claimsNeeded).some(([name]) => name === 'groups')
  if (!needsGroups || providerKind(issuer) !== 'entra') return []
  return [
    ok(
      'provider.overage',
      'withholds groups from people in more than 200 groups: rules that read groups then deny access (ERR_CLAIM_WITHHELD). Use app roles, or only the groups that are assigned to the application',
    ),
  ]
}

/** The claims that the rules and the headers of an upstream read. */
function claimsNeeded({ headers, rules, signedIdentity }: UpstreamConfig): readonly ClaimPath[] {
  return [
    ...[headers, ...rules.map((rule) => rule.headers ?? [])].flat().flatMap(claimsIn),
    ...rules.flatMap(({ require }) => require.flatMap(claimsOf)),
    ...(signedIdentity?.claims ?? []).map(({ path }) => path),
  ]
}

function namesOf(paths: readonly ClaimPath[]): readonly string[] {
  return [...new Set(paths.map(([name]) => String(name)))]
}
