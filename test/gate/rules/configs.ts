import type { ClaimRequirement } from '../../../src/config/model/requirement.ts'
import type { RuleConfig } from '../../../src/config/model/rule.ts'
import type { DeviceBindingConfig } from '../../../src/config/model/session.ts'
import type { UpstreamConfig } from '../../../src/config/model/upstream.ts'
import { parseClaimPath } from '../../../src/core/claims.ts'
import { parsePathPattern, type PathPattern } from '../../../src/core/patterns.ts'
import type { Subject } from '../../../src/gate/rules/requirement.ts'
import { loadedUpstream } from '../../support/upstream-config.ts'

const usual = loadedUpstream(
  '{ url: http://127.0.0.1:3000, connect_timeout: 1s, response_timeout: 1s, idle_timeout: 1s }',
)

/** An upstream for which everybody has to sign in. `settings` replace its settings. */
export function upstream({
  logout = [],
  ...settings
}: Partial<Omit<UpstreamConfig, 'logout'>> & { logout?: PathPattern[] } = {}): UpstreamConfig {
  return {
    ...usual,
    targets: usual.targets.map((target) => ({ ...target, url: settings.url ?? usual.url })),
    logout: { ...usual.logout, paths: logout.map((path) => ({ path, query: [], methods: undefined })) },
    ...settings,
  }
}

type Requirements = Omit<ClaimRequirement, 'kind' | 'claim' | 'claimText'>

export function requirement(claimText: string, requirements: Requirements): ClaimRequirement {
  return { kind: 'claim', claim: parseClaimPath(claimText), claimText, ...requirements }
}

/** A GET of a person without claims, by a client at a documentation address. */
export function subject(facts: Partial<Subject>): Subject {
  return { claims: {}, method: 'GET', clientAddress: '203.0.113.7', now: Date.parse('2026-11-23T09:00:00Z'), ...facts }
}

/** A rule for a path; `any_of` and the like apply to the claim `groups`. */
export function rule(
  path: string,
  {
    access = 'signed_in',
    methods,
    unauthenticated = 'auto',
    ...requirements
  }: Partial<Pick<RuleConfig, 'access' | 'methods' | 'unauthenticated'>> & Requirements = {},
): RuleConfig {
  const require = Object.keys(requirements).length > 0 ? [requirement('groups', requirements)] : []
  return { path: parsePathPattern(path), methods, access, unauthenticated, require }
}

/** A configuration of sessions that are not bound to devices. */
export const unbound: { readonly deviceBinding: DeviceBindingConfig } = {
  deviceBinding: {
    isOn: false,
    isRequired: false,
    cookieLifetimeMs: 300_000,
    registrationGraceMs: 60_000,
    onMisuse: 'refuse',
  },
}
