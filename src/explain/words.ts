import type { RequirementConfig, RuleConfig, UpstreamConfig } from '../config/model.ts'

/** Which requests an upstream is for. */
export function hostsText({ hosts, path }: UpstreamConfig): string {
  const where = hosts.length === 0 ? 'any host' : hosts.join(', ')
  return path === '/' ? `${where}, any path` : `${where}, below ${path}`
}

/** What a rule is about, and what it asks. */
export function ruleText(rule: RuleConfig): string {
  if (rule.place === undefined) return 'none matches: everybody has to be signed in'
  const methods = rule.methods === undefined ? '' : `${rule.methods.join(', ')} `
  return `${rule.setting}, the first that matches: ${methods}${rule.path.text} ${accessText(rule)}`
}

function accessText({ access, unauthenticated, require }: RuleConfig): string {
  switch (access) {
    case 'public':
      return 'is open to everybody, and nobody’s identity is passed on'
    case 'optional':
      return 'is open to everybody, with the identity of who is signed in'
    case 'signed_in': {
      const others = { auto: '', redirect: '; others are always redirected', '401': '; others get 401' }
      const asked = require.map((requirement) => `, and ${requirementText(requirement)}`).join('')
      return `asks for a sign-in${asked}${others[unauthenticated]}`
    }
  }
}

/** `groups has any of admins, editors` */
export function requirementText({ claimText, anyOf, allOf, noneOf }: RequirementConfig): string {
  const parts = [
    anyOf && `any of ${anyOf.join(', ')}`,
    allOf && `all of ${allOf.join(', ')}`,
    noneOf && `none of ${noneOf.join(', ')}`,
  ].filter((part) => part !== undefined)
  return `${claimText} has ${parts.join(' and ')}`
}
