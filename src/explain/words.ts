import type { RequirementConfig, RuleConfig, UpstreamConfig } from '../config/model.ts'

/** Which requests an upstream serves. */
export function hostsText({ hosts, path }: UpstreamConfig): string {
  const where = hosts.length === 0 ? 'any host' : hosts.join(', ')
  return path === '/' ? `${where}, any path` : `${where}, below ${path}`
}

/** Which requests a rule matches, and what it requires. */
export function ruleText(rule: RuleConfig): string {
  if (rule.place === undefined) return 'no rule matches: a sign-in is required'
  const methods = rule.methods === undefined ? '' : `${rule.methods.join(', ')} `
  return `${rule.setting}, the first match: ${methods}${rule.path.text} ${accessText(rule)}`
}

function accessText({ access, unauthenticated, require }: RuleConfig): string {
  switch (access) {
    case 'public':
      return 'is public, and no identity is forwarded'
    case 'optional':
      return 'is public, and the identity of a signed-in person is forwarded'
    case 'signed_in': {
      const others = { auto: '', redirect: '; others are always redirected', '401': '; others get 401' }
      const requirements = require.map((requirement) => `, and ${requirementText(requirement)}`).join('')
      return `requires a sign-in${requirements}${others[unauthenticated]}`
    }
  }
}

/** `groups has any of admins, editors` */
export function requirementText({ claimText, any_of, all_of, none_of }: RequirementConfig): string {
  const parts = [
    any_of && `any of ${any_of.join(', ')}`,
    all_of && `all of ${all_of.join(', ')}`,
    none_of && `none of ${none_of.join(', ')}`,
  ].filter((part) => part !== undefined)
  return `${claimText} has ${parts.join(' and ')}`
}
